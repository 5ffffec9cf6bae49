"""Cards that do not answer: an error within its deadline, rows still there, and a process that ends like any other.

Each test loses its card, and a lost card stays lost: run one in a process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from hillinfer.csd.boards.xrt import open_board
from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import DeviceError
from scripts.hw_emu.faults import VARIABLE
from tests.csd.conftest import GEOMETRY
from tests.csd.kernel.twins import Twins, open_kernel

A = Stream(0, 0)
TOKENS = 64 * 40
WHOLE = [Run(0, TOKENS)]


def device_processes() -> list[int]:
    """The device processes of this environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            serves = b"scripts.hw_emu.serve" in (folder / "cmdline").read_bytes()
            if serves and os.getsid(int(folder.name)) == os.getsid(0):
                found.append(int(folder.name))
    return found


@pytest.fixture
def board(monkeypatch, request):
    monkeypatch.setenv(VARIABLE, getattr(request, "param", ""))
    return open_board("xrt:0")


@pytest.fixture
def twins(tmp_path, board):
    twins = Twins(tmp_path, open_kernel(tmp_path, board, keys="resident"))
    twins.append(A, TOKENS)
    yield twins
    twins.close()
    twins.close()
    assert list(tmp_path.iterdir()) == []


def patient(board, seconds):
    """How long the card has from here on; 600 s where it should answer, or must not be asked."""
    board._card.thread.seconds = board._card.launches.seconds = seconds


def lost(twins, board, message):
    """The next scores are an error in time, so are all after it at once; rows are read as ever."""
    patient(board, 1.0)
    with pytest.raises(DeviceError, match=message):
        list(twins.device.submit(A, twins.query(1), WHOLE))
    patient(board, 600.0)
    start = time.monotonic()
    with pytest.raises(DeviceError, match=message):
        list(twins.device.submit(A, twins.query(2), WHOLE))
    assert time.monotonic() - start < 60.0
    rows = [np.empty((TOKENS, GEOMETRY.row_bytes), np.uint8) for _ in range(2)]
    for device, out in zip((twins.device, twins.software), rows, strict=True):
        device.read(A, np.arange(TOKENS), out).wait()
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("board", ["hang_after=2"], indirect=True)
def test_a_launch_that_never_ends(twins, board):
    lost(twins, board, r"xrt:0 has not ended a launch within 1 s .*: see dmesg, and reset the card")


def test_a_card_that_stops_answering(twins, board):
    twins.check(A, twins.query(0), WHOLE)
    (process,) = device_processes()
    os.kill(process, signal.SIGSTOP)
    lost(twins, board, r"xrt:0 has not answered for 1 s \(a copy to the card\)")


@pytest.mark.parametrize("board", ["slow=60000"], indirect=True)
def test_a_card_that_is_killed_in_the_midst_of_a_launch(twins):
    """XRT takes the launch for done (the emulation's way of a card that is gone): its Score Blocks tell."""
    ticket = twins.device.submit(A, twins.query(0), WHOLE)
    for process in device_processes():
        os.kill(process, signal.SIGKILL)
    with pytest.raises(DeviceError, match="Score Block"):
        list(ticket)
