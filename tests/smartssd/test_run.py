"""Taking steps: in order, only what is not done, up to one that fails or is a person's. Commands are real ones."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.smartssd import run
from scripts.smartssd.step import Setting, Step


def touching(file: Path, **more: object) -> Callable[[Setting], Step]:
    """A step that is done when a file exists, and makes it."""

    def make(_: Setting) -> Step:
        commands = (("touch", str(file)),)
        step = {"what": "a file", "why": "because", "found": "there" if file.exists() else "nothing"}
        return Step(file.name, done=file.exists(), **{**step, "commands": commands, **more})  # type: ignore[arg-type]

    return make


def test_steps_are_taken_once(tmp_path: Path) -> None:
    said: list[str] = []
    makers = [touching(tmp_path / name) for name in ("one", "two")]
    run.apply(makers, Setting(), said.append)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    times = [path.stat().st_mtime_ns for path in tmp_path.iterdir()]
    said.clear()
    run.apply(makers, Setting(), said.append)
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == times
    assert all("[done]" in line for line in said)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"commands": (("false",),), "undo": "cat undo"}, "failed with 1. Undo: cat undo"),
        ({"commands": (("no-such-program",),)}, "cannot be run (No such file or directory)"),
        ({"commands": (("true",),)}, "was run, but now: nothing"),
        ({"by_hand": ("fetch it:", "  there")}, "is yours to do: fetch it; then run this again"),
        ({"confirm": "0000:05:00.0"}, "was not confirmed; nothing was done"),
    ],
)
def test_it_stops_and_says_why(tmp_path: Path, more: dict[str, object], says: str) -> None:
    makers = [touching(tmp_path / "one"), touching(tmp_path / "two", **more), touching(tmp_path / "three")]
    with pytest.raises(run.Stopped, match=r"^two") as stop:
        run.apply(makers, Setting(), lambda _: None)
    assert says in str(stop.value)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize(("typed", "done"), [("0000:05:00.0\n", True), ("yes\n", False), ("", False)])
def test_what_cannot_be_undone_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, done: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    maker = touching(tmp_path / "flash", confirm="0000:05:00.0")
    if done:
        run.apply([maker], Setting(), lambda _: None)
    else:
        with pytest.raises(run.Stopped):
            run.apply([maker], Setting(), lambda _: None)
    assert (tmp_path / "flash").exists() is done


def test_a_step_that_leaves_no_trace_is_taken_each_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    step = Step("look", "look", "why", "each time", None, commands=(("sh", "-c", f"echo x >> {log}"),))
    for _ in range(2):
        run.apply([lambda _: step], Setting(), lambda _: None)
    assert log.read_text() == "x\nx\n"


def test_the_front_door_finds_a_python(tmp_path: Path) -> None:
    setup = Path(__file__).parents[2] / "scripts/smartssd/setup"
    shown = subprocess.run(["bash", setup, "--only", "card"], capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("1. card: a SmartSSD in the machine")
    environ = {"PATH": "/usr/bin:/bin", "PYTHON": str(tmp_path / "python3.8")}
    shown = subprocess.run(["bash", setup], capture_output=True, text=True, env=environ)
    assert shown.returncode == 2
    assert "no Python 3.10 or newer" in shown.stderr
