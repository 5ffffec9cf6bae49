"""The suite on the cards' drivers, emulated: each run is a process and a session of its own, with a deadline.

A host of the emulation can hang for good, and signals its whole process group when it aborts: so not in this process.
Both run at the same time.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from scripts.conformance.run import CARDS, ROOT
from scripts.hw_emu import environment
from scripts.xrt_binding import build as binding
from tests.conformance.drivers import WITH_P2P
from tests.hls.builds import native_library
from tests.hw_emu.emulation import needs_xrt

P2P = "test_streamed_keys.py::test_p2p_keys_go_from_the_drive_to_the_card"
_MORE_THAN_ITS_DEADLINE = 900


pytestmark = needs_xrt

NEEDS_OLD_PYTHON = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="PYNQ 3.0.1 needs numpy 1, which Python 3.13 has not"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """For each card its process, and the file of its outcomes."""
    for build in (native_library, environment.registers, environment.shim_fixes, binding.build):
        build()  # before two processes find it missing
    started = {}
    for card in CARDS if sys.version_info < (3, 13) else ["xrt"]:
        report = tmp_path_factory.mktemp(card) / "report.json"
        command = [sys.executable, "-m", "scripts.conformance", "--drivers", card, "--kernel", "native"]
        command += ["--output", str(report)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started[card] = (process, report)
    yield started
    for process, _ in started.values():
        process.terminate()
        process.wait()


@pytest.mark.parametrize("card", ["xrt", pytest.param("pynq", marks=NEEDS_OLD_PYTHON)])
def test_an_emulated_card_conforms(card, runs):
    process, report = runs[card]
    said, _ = process.communicate(timeout=_MORE_THAN_ITS_DEADLINE)
    assert process.returncode == 0, said
    outcomes = json.loads(report.read_text())[card]
    assert outcomes["failed"] == outcomes["skipped"] == []
    passed, left_out = (P2P in outcomes["passed"]), outcomes["not_applicable"]
    assert (passed, left_out) == ((True, []) if card in WITH_P2P else (False, [P2P]))
