"""The half of a device that scores keys; the other half, rows in the cold pool, is the same for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hillinfer.csd.contract import Capabilities, Counters, KeyRun, Record, Rows, Run, ScoreTicket, Stream
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery


def timed(record: Record, counters: Counters) -> Record:
    """A record that counts the seconds of each submission as well."""

    def note(name: str, thread: str, start: float, end: float) -> None:
        counters.seconds += end - start
        record(name, thread, start, end)

    return note


class Scorer(ABC):
    """Holds the scoring copy of every stream and scores it. Calls come one at a time, and are valid
    ones; tickets, meanwhile, may be taken by other threads.

    counters   scoring_bytes, scan_bytes, launches and what belongs to them are counted by the scorer
    """

    capabilities: Capabilities
    counters: Counters

    @abstractmethod
    def check_room(self, tokens: int, sequences: int) -> int:
        """Bytes of the cold folder that the scoring copy of so many tokens takes, all layers together, less what it
        takes already. DeviceError unless it fits into the scorer's own memory."""

    @abstractmethod
    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:
        """Keep the scoring keys of the tokens first…, which are the next whole tiles; ``rows`` hold the same keys."""

    @abstractmethod
    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        """Keep other scoring keys for the tokens first… from now on, or such that come later than their rows."""

    @abstractmethod
    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        """Score the tokens of ``runs`` against a query."""

    def in_memory(self, stream: Stream, runs: Sequence[Run]) -> list[KeyRun] | None:  # noqa: ARG002
        """``Device.in_memory``."""
        return None

    def scanned(self, stream: Stream, tokens: int, runs: int, seconds: float) -> None:  # noqa: B027
        """``Device.scanned``."""

    @abstractmethod
    def flush(self) -> None:
        """Until every key that goes to a file is there; raises what went wrong on the way."""

    @abstractmethod
    def close(self) -> None:
        """Stop all work, give memory and files back. May be called twice, and while work is under way."""
