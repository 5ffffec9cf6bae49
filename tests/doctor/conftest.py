"""What the doctor's tests share: an empty machine to put things into, and the rule that every finding keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hillinfer.doctor import Finding, State, Wanted
from tests.doctor.box import Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "machine")


Look = Callable[..., dict[str, Finding]]


@pytest.fixture
def look(box: Box) -> Look:
    """``look(cards, "xrt:0")``: the findings of one subject by name."""

    def look(
        subject: ModuleType, device: str = "xrt:0", cold_dir: Path | None = None, **more: Any
    ) -> dict[str, Finding]:
        findings = list(subject.examine(box.machine, Wanted(device, cold_dir, **more)))
        for finding in findings:
            assert finding.subject == subject.SUBJECT
            assert finding.found
            if finding.state in (State.WARNING, State.MISSING):
                assert finding.means
                assert finding.fix
        named = {finding.name: finding for finding in findings}
        assert len(named) == len(findings)
        return named

    return look
