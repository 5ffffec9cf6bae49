"""The kernel's image: found, of this ABI, for this shell. Images come from the emulation's own writer."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any

import pytest

from hillinfer.doctor import State, image
from scripts.hw_emu.xclbin import INTERFACE, POINTERS, SCALARS, Card, xclbin
from tests.doctor.box import Box

REGISTERS = {name: 0x10 + 12 * place for place, name in enumerate(POINTERS)}
REGISTERS |= {name: 0x40 + 8 * place for place, name in enumerate(SCALARS)}
_MODE_AT = 332  # of struct axlf_header, from the file's beginning


def make(path: Path, *, mode: int = 0, kernel: str = "qk_score") -> Path:
    """An image; mode 0 is one for a card."""
    data = bytearray(xclbin(REGISTERS, Card(), kernel))
    struct.pack_into("<H", data, _MODE_AT, mode)
    path.write_bytes(data)
    return path


def test_an_image_for_the_card(box: Box, look: Any, tmp_path: Path) -> None:
    user = box.card(3)
    box.write(f"{user}/interface_uuids", f"{uuid.uuid4().hex}\n{INTERFACE.hex}\n")
    found = look(image, xclbin=make(tmp_path / "qk_score.xclbin"))
    assert {finding.state for finding in found.values()} == {State.OK}
    assert list(found) == ["xclbin", "mode", "provenance", "ABI", "shell of 0000:05:00.1"]


def test_an_image_for_another_shell(box: Box, look: Any, tmp_path: Path) -> None:
    user = box.card(3)
    box.write(f"{user}/interface_uuids", f"{uuid.uuid4().hex}\n")
    found = look(image, xclbin=make(tmp_path / "qk_score.xclbin"))
    assert found["shell of 0000:05:00.1"].state is State.MISSING
    assert "another shell" in found["shell of 0000:05:00.1"].fix


@pytest.mark.parametrize(("told", "state"), [("", State.OK), ("nonsense\n", State.OK)])
def test_a_shell_that_does_not_say(box: Box, look: Any, tmp_path: Path, told: str, state: State) -> None:
    user = box.card(3)
    box.write(f"{user}/interface_uuids", told)
    assert look(image, xclbin=make(tmp_path / "q.xclbin"))["shell of 0000:05:00.1"].state is state


def test_what_makes_an_image_wrong(box: Box, look: Any, tmp_path: Path) -> None:
    box.card(3)
    emulated = look(image, xclbin=make(tmp_path / "emulated.xclbin", mode=4))
    assert emulated["mode"].state is State.MISSING
    foreign = look(image, xclbin=make(tmp_path / "foreign.xclbin", kernel="vadd"))
    assert foreign["ABI"].state is State.MISSING
    changed = make(tmp_path / "changed.xclbin")
    (tmp_path / "changed.xclbin.json").write_text('{"sha256": {"xclbin": "0"}}')
    assert look(image, xclbin=changed)["provenance"].state is State.MISSING
    (tmp_path / "cut.xclbin").write_bytes(changed.read_bytes()[:400])
    for missing in (tmp_path / "cut.xclbin", tmp_path / "none.xclbin"):
        assert look(image, xclbin=missing)["xclbin"].state is State.MISSING


def test_no_image_is_needed_without_a_card(look: Any) -> None:
    assert {finding.state for finding in look(image, "software").values()} == {State.UNNEEDED}
