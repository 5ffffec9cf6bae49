"""``hillinfer doctor`` on this machine, which has no card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_the_software_device_runs_here(hill: Any) -> None:
    shown = hill("doctor", "--json")
    assert shown.code == 0
    [line] = shown.out.splitlines()
    told = json.loads(line)
    assert (told["device"], told["ready"]) == ("software", True)
    subjects = list(dict.fromkeys(finding["subject"] for finding in told["findings"]))
    assert subjects[:5] == ["processor", "memory", "cold folder", "frameworks", "models"]
    assert {"cards", "XRT", "PYNQ"} <= set(subjects)
    assert not [finding for finding in told["findings"] if finding["name"] == "look"]
    assert {finding["state"] for finding in told["findings"] if finding["subject"] == "cards"} == {"not needed"}


def test_a_device_that_is_none_is_a_usage_error(hill: Any) -> None:
    shown = hill("doctor", "--device", "xtr:0")
    assert (shown.code, shown.out) == (2, "")
    assert "did you mean 'xrt'?" in shown.err


def test_a_card_is_missing_here_and_the_table_says_how_to_get_it(hill: Any, tmp_path: Path) -> None:
    shown = hill("doctor", "--device", "xrt:0", "--cold-dir", tmp_path / "none")
    assert shown.code == 1
    for word in (
        "SmartSSD: none on the PCI bus",
        "lspci -d 10ee:",
        f"mkdir -p {tmp_path / 'none'}",
        "xrt:0 cannot run",
    ):
        assert word in shown.out
