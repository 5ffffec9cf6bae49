"""What the tiered engine remembers about its streams between steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hillinfer.pipeline.arrivals import Arrived
from hillinfer.pipeline.chosen import Chosen
from hillinfer.store.token_stream import TokenStream


@dataclass
class Work:
    """A stream, and what is due on it.

    fresh    a prompt was read since the last step: its last queries have yet to fill the hot pool
    ahead    what the next step attends to, where it was foretold
    behind   what was put off behind the last step
    arrived  the coming step's query and row on their way to DRAM, where it was announced and is computed elsewhere
    index    bytes of the stream's index that the ledger knows of
    """

    stream: TokenStream
    fresh: bool = False
    ahead: Chosen | None = None
    behind: Callable[[], None] | None = None
    arrived: Arrived | None = None
    index: int = 0

    def ready(self) -> TokenStream:
        """The stream, once what was put off behind its last step is done."""
        if self.behind is not None:
            behind, self.behind = self.behind, None
            behind()
        return self.stream


class Behind:
    """What was put off behind earlier steps, of all streams. Knows no engine: there is no cycle to keep one alive."""

    def __init__(self) -> None:
        self._works: list[Work] = []

    def put(self, work: Work, todo: Callable[[], None]) -> None:
        """Do it before the stream is used again, or when there is time."""
        work.behind = todo
        self._works.append(work)

    def catch_up(self) -> None:
        """Do all of it; called while something else is waited for."""
        works, self._works = self._works, []
        for work in works:
            work.ready()
