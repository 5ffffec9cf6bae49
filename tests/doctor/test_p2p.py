"""P2P: what XRT's driver says of it, and what of the machine stands in its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.doctor import State, p2p
from tests.doctor.box import LOW, Box

STATES = ["enabled", "disabled", "no iomem", "wrong remapper", "not supported"]


@pytest.mark.parametrize("state", STATES)
def test_the_state_that_xrt_would_tell(box: Box, look: Any, state: str) -> None:
    box.card(3, p2p=state)
    finding = look(p2p)["0000:05:00.1 P2P"]
    assert finding.found == state
    assert finding.state is (State.OK if state == "enabled" else State.WARNING)
    assert look(p2p, device_keys="resident")["0000:05:00.1 P2P"].state is State.UNNEEDED


KEYS = st.sampled_from(["bar", "rbar", "exp_bar", "remap", "0:bank0", ""])


@settings(max_examples=50)
@given(
    st.lists(st.builds("{}:{}".format, KEYS, st.integers(0, 3) | st.text(max_size=3)) | st.text(max_size=9), max_size=5)
)
def test_any_file_has_a_state(lines: list[str]) -> None:
    assert p2p.status(lines) in STATES


def test_an_iommu_and_a_bus_below_4_gb_are_told(box: Box, look: Any) -> None:
    user = box.card(3)
    assert {finding.state for name, finding in look(p2p).items() if "drive" not in name} == {State.OK}
    box.write("sys/kernel/iommu_groups/7/type", "DMA-FQ\n")
    box.link(f"{user}/iommu_group", box.root / "sys/kernel/iommu_groups/7")
    for entry in (box.root / "sys/bus/pci/devices").iterdir():
        if entry.is_dir():
            (entry / "resource").write_text(f"{LOW}\n")
    found = look(p2p)
    assert found["0000:05:00.1 IOMMU"].found == "on (DMA-FQ)"
    assert found["decoding above 4 GB"].state is State.WARNING


def test_the_cold_folder_belongs_on_the_cards_own_drive(box: Box, look: Any, tmp_path: Path) -> None:
    folder = (tmp_path / "smartssd").resolve()
    folder.mkdir()
    box.card(3, drive="nvme1")
    box.card(13, drive="nvme2")
    box.mount(Path("/"), "8:1", source="/dev/sda1")
    box.mount(folder, "259:3")
    own = look(p2p, "xrt:1", folder / "cold")["the card's own drive"]
    assert own.state is State.OK
    assert own.found == "nvme1n1p1, of 0000:05:00.1"
    other = look(p2p, "xrt:0", folder)["the card's own drive"]
    assert other.state is State.WARNING
    assert "not on nvme2n1" in other.found
    assert look(p2p, "xrt:0", tmp_path)["the card's own drive"].state is State.WARNING
    assert look(p2p, "software", tmp_path)["the card's own drive"].state is State.UNNEEDED


def test_nothing_is_said_without_a_card(look: Any) -> None:
    assert look(p2p) == {}
