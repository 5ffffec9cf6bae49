"""The kernel's libraries: each is needed by the device that runs it, and by no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hillinfer.doctor import State, libraries


@pytest.mark.parametrize(
    ("device", "variable", "name"), [("native", "HILLINFER_NATIVE", "C simulation"), ("rtl", "HILLINFER_RTL", "RTL")]
)
def test_a_library_that_is_none(
    look: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: str, variable: str, name: str
) -> None:
    wrong = tmp_path / "library.so"
    wrong.write_text("no library")
    for place in (tmp_path / "nowhere", wrong):
        monkeypatch.setenv(variable, str(place))
        finding = look(libraries, device)[name]
        assert finding.state is State.MISSING
        assert variable in finding.fix or "make" in finding.fix or "again" in finding.fix
        assert look(libraries, "software")[name].state is State.UNNEEDED


def test_those_of_this_checkout(look: Any) -> None:
    found = look(libraries, "native")["C simulation"]
    assert found.state is State.OK or "make csim" in found.fix
