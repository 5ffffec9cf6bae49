"""Peak memory is measured, per window, children included."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hillinfer import memory
from hillinfer.memory import PeakMemory

MIB = 1 << 20


def test_peak_sees_what_was_held_and_let_go() -> None:
    peak = PeakMemory()
    before = peak.peak_bytes()
    held = np.ones(64 * MIB, np.uint8)
    del held
    assert peak.peak_bytes() - before > 48 * MIB


def test_a_new_window_forgets_the_old_peak() -> None:
    peak = PeakMemory()
    if not peak.windowed:
        pytest.skip("this kernel cannot reset the peak (/proc/self/clear_refs)")
    held = np.ones(64 * MIB, np.uint8)
    high = peak.peak_bytes()
    del held
    peak.restart()
    assert high - peak.peak_bytes() > 48 * MIB


def test_children_count() -> None:
    peak = PeakMemory()
    before = peak.peak_bytes()
    code = f"held = b'x' * {64 * MIB}; print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert peak.peak_bytes() - before > 48 * MIB
        child.communicate("\n")


def test_without_proc_the_lifetime_peak_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(memory, "_CLEAR_REFS", tmp_path / "none" / "clear_refs")  # type: ignore[operator]
    peak = PeakMemory()
    assert not peak.windowed
    assert peak.peak_bytes() > 10 * MIB
