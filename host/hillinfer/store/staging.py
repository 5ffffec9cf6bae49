"""Cold rows that are read before they are asked for, because a step is likely to need them (lookahead).

A guess changes nothing but when a read begins: what was guessed right is taken from here, the rest is read as always,
and a guess that cannot be read is as if it had not been made.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hillinfer.csd.contract import Device, ReadTicket, Rows, Stream
from hillinfer.errors import ColdPoolError

Positions = npt.NDArray[np.int64]


@dataclass
class Staged:
    """Rows uint8 [n, row_bytes] of ascending positions int64 [n], on their way. Dropped, they are given up."""

    positions: Positions
    rows: Rows
    ticket: ReadTicket
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def start(cls, csd: Device, stream: Stream, positions: Positions, row_bytes: int) -> Staged:
        """Start to read ahead."""
        rows = np.empty((len(positions), row_bytes), np.uint8)
        return cls(positions, rows, csd.read(stream, positions, rows))

    def places(self, positions: Positions) -> Positions:
        """Where ascending positions are in ``rows``; −1 where they are not."""
        place = np.searchsorted(self.positions, positions)
        found = self.positions[np.minimum(place, len(self.positions) - 1)] == positions
        return np.where(found, place, -1)


class StagedRead(ReadTicket):
    """A read of ascending positions into out uint8 [n, row_bytes], some of which were read ahead.

    hits      how many; the others start to be read now
    started   when reading ahead began, seconds of time.perf_counter
    """

    _rest: ReadTicket | None

    def __init__(self, csd: Device, stream: Stream, positions: Positions, out: Rows, staged: Staged) -> None:
        self._csd, self._stream, self._positions, self._out, self._staged = csd, stream, positions, out, staged
        self.started = staged.started
        places = staged.places(positions)
        self._hits, self._misses = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        self._places, self.hits = places[self._hits], len(self._hits)
        self._told, self._rest = False, None
        self._missed = np.empty((len(self._misses), out.shape[1]), np.uint8)
        if len(self._misses):
            self._rest = csd.read(stream, positions[self._misses], self._missed)

    def ready(self) -> npt.NDArray[np.int64]:
        if not self._told:
            self._take()
            return self._hits
        if self._rest is None:
            return self._misses[:0]
        arrived = self._rest.ready()
        self._out[self._misses[arrived]] = self._missed[arrived]
        return self._misses[arrived]

    def wait(self) -> None:
        if not self._told:
            self._take()
        if self._rest is not None:
            self._rest.wait()
            self._out[self._misses] = self._missed

    def _take(self) -> None:
        """Copy what was read ahead to its place; read it anew if that went wrong, perhaps for a row nobody wants."""
        self._told = True
        try:
            self._staged.ticket.wait()
            self._out[self._hits] = self._staged.rows[self._places]
        except ColdPoolError:
            rows = np.empty((len(self._hits), self._out.shape[1]), np.uint8)
            self._csd.read(self._stream, self._positions[self._hits], rows).wait()
            self._out[self._hits] = rows
