"""How far an evaluation is, with the time left: a bar on a terminal, else a line per item; on stderr."""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from hillinfer.cli.console import stderr


class EvalProgress:
    """To be given as ``on_progress``; the first call says what was done before this run."""

    def __init__(self) -> None:
        self._console = stderr()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("loading", total=None)
        self._begun: tuple[float, int] | None = None

    def __enter__(self) -> EvalProgress:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def update(self, done: int, total: int, doing: str) -> None:
        """``done`` tokens of prompts of ``total``, and what comes next."""
        now = time.monotonic()
        self._begun = self._begun or (now, done)
        self._bar.update(self._task, completed=done, total=total, description=doing)
        if not self._console.is_terminal:
            since, at_first = self._begun
            left = (now - since) * (total - done) / (done - at_first) / 60 if done > at_first else None
            self._console.print(f"{doing}" if left is None else f"{doing}, {left:.0f} min left", soft_wrap=True)
