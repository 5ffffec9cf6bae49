"""Run a command in the environment: in a session of its own, which ends when the command does, or at a deadline.

A host of the emulation can hang for good (the device process died) and signals its whole process group when it aborts.
So nothing of a command outlives it, and nothing of it reaches the caller.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import environment
from .environment import Settings
from .errors import EmulationError

DEADLINE_EXIT = 124
CARD_EXIT = 70
_POLL = 0.02


def run(
    command: Sequence[str],
    settings: Settings,
    deadline: float,
    *,
    python: Path = Path(sys.executable),
    directory: Path | None = None,
) -> int:
    """The command's exit code; 124 at the deadline (seconds), 70 when a card would have hung, and stderr says why.

    ``python`` is the Python that the command finds first on its PATH.
    """
    folder = environment.make_folder()
    try:
        variables = environment.complete(environment.make(folder, settings), os.environ, python)
        try:
            program = shutil.which(command[0], path=variables["PATH"]) or command[0]
            process = subprocess.Popen([program, *command[1:]], env=variables, cwd=directory, start_new_session=True)
        except OSError as error:
            raise EmulationError(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            with _ended_by_signals():
                return _wait(process, folder / "errors", deadline)
        finally:
            end_session(process.pid)
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], errors: Path, deadline: float) -> int:
    end = time.monotonic() + deadline
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(_POLL)
            if not errors.exists():
                return code if code >= 0 else 128 - code
        if errors.exists():
            sys.stderr.write(f"hw_emu: {errors.read_text(encoding='utf-8')}")
            return CARD_EXIT
        if time.monotonic() > end:
            sys.stderr.write(f"hw_emu: stopped after {deadline:g} s\n")
            return DEADLINE_EXIT


def end_session(session: int) -> None:
    """Kill every process of the session that was started with this process."""
    for _ in range(3):  # a process that forks while this reads is caught the next time
        members = _members(session)
        if not members:
            return
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)


def _members(session: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end this process as ctrl-C does: with the command's session ended."""

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
