"""The doctor where XRT's own runtime and an image are: in the environment of an emulated card."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.hw_emu.environment import Settings
from scripts.hw_emu.run import run
from tests.hw_emu.emulation import ROOT, needs_xrt

pytestmark = needs_xrt

_LOOK = """if True:
    from hillinfer.doctor import Machine, State, Wanted, cards, image, p2p, runtime
    found = [finding for subject in (cards, runtime, image, p2p)
             for finding in subject.examine(Machine(), Wanted("xrt:0,xrt:1", device_keys="stream"))]
    wrong = [finding for finding in found if finding.state in (State.WARNING, State.MISSING)]
    assert not wrong, wrong
    states = {finding.name: finding.state for finding in found}
    assert all(states[name] is State.OK for name in ("emulation", "libraries", "XILINX_XRT", "pyxrt", "xclbin", "ABI"))
"""


def test_an_emulated_card_lacks_nothing() -> None:
    command = [sys.executable, "-c", _LOOK]
    assert run(command, Settings(cards=2), 120.0, python=Path(sys.executable), directory=ROOT) == 0
