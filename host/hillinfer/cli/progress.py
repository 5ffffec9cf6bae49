"""The prefill's progress bar: on stderr, and only where a person is looking at it."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from hillinfer.cli.console import stderr


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} {self._unit}/s")


class PrefillBar:
    """Shows what is done, speed and time left on a terminal; nothing elsewhere. Gone when all is done."""

    def __init__(self, show: bool, doing: str = "reading the prompt", unit: str = "tokens") -> None:
        console = stderr()
        self._shown = show and console.is_terminal
        self._progress = Progress(
            TextColumn(doing),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(unit),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,  # stdout is the answer's
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("prefill", total=None)

    def __enter__(self) -> PrefillBar:
        if self._shown:
            self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def update(self, done: int, total: int) -> None:
        """To be given as ``on_prefill``."""
        self._progress.update(self._task, completed=done, total=total)
        if done >= total:
            self._stop()  # the text streams from here on

    def _stop(self) -> None:
        if self._shown:
            self._progress.stop()
        self._shown = False
