"""Several boards behind one device: each scores a share of the keys; rows are in one cold pool as ever.

Two ways to share:

layer    layer l is scored by board l mod n. Nothing is split, but one board works at a time, as layers come one after
         the other: it is for keys that do not fit into one board.
tokens   stretches of 1024 tokens go round the boards. All of them work on every query, so it is n times as fast; each
         query and a few bytes per launch are sent n times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hillinfer.csd.assembly import AssembledTicket, AssemblingScorer
from hillinfer.csd.contract import Capabilities, Counters, Rows, Run, Stream
from hillinfer.kv.geometry import BLOCK, TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery

STRETCH = BLOCK
"""Tokens that lie on one board before the next one's turn."""


def share_of_layers(geometry: Geometry, board: int, boards: int) -> Geometry:
    """The layers that one of several boards scores when they share by layer."""
    return replace(geometry, layers=len(range(board, geometry.layers, boards)))


def share_of_tokens(tokens: int, board: int, boards: int) -> int:
    """How many of a sequence's first ``tokens`` tokens one of several boards holds when they share by tokens."""
    rounds, rest = divmod(tokens, STRETCH * boards)
    return rounds * STRETCH + min(STRETCH, max(0, rest - board * STRETCH))


class _Several(AssemblingScorer):
    """What both ways have in common."""

    def __init__(self, scorers: Sequence[AssemblingScorer], counters: Counters) -> None:
        self.scorers = tuple(scorers)
        self.counters = counters
        each = [scorer.capabilities for scorer in scorers]
        memory = [one.memory_bytes for one in each]
        self.capabilities = Capabilities(
            ",".join(one.name for one in each),
            tuple(name for name in each[0].key_formats if all(name in one.key_formats for one in each)),
            None if None in memory else sum(nbytes or 0 for nbytes in memory),
            all(one.p2p for one in each),
        )

    def flush(self) -> None:
        for scorer in self.scorers:
            scorer.flush()

    def close(self) -> None:
        failure: Exception | None = None
        for scorer in self.scorers:
            try:
                scorer.close()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure


class ByLayer(_Several):
    """Board l mod n has layer l."""

    def check_room(self, tokens: int, sequences: int) -> int:
        return sum(scorer.check_room(tokens, sequences) for scorer in self.scorers)

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:
        scorer, its = self._share(stream)
        scorer.append(its, first, rows, keys)

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        scorer, its = self._share(stream)
        scorer.rekey(its, first, keys)

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> AssembledTicket:
        scorer, its = self._share(stream)
        return scorer.submit(its, query, runs)

    def _share(self, stream: Stream) -> tuple[AssemblingScorer, Stream]:
        layer, board = divmod(stream.layer, len(self.scorers))
        return self.scorers[board], Stream(layer, stream.sequence)


class ByTokens(_Several):
    """Tokens [k · 1024, (k + 1) · 1024) are on board k mod n, where they lie behind the board's earlier ones."""

    def check_room(self, tokens: int, sequences: int) -> int:
        boards = len(self.scorers)
        shares = [share_of_tokens(tokens, board, boards) for board in range(boards)]
        return sum(scorer.check_room(share, sequences) for scorer, share in zip(self.scorers, shares, strict=True))

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:
        for board, here, part, share in self._shares(first, keys):
            self.scorers[board].append(stream, here, rows[part], share)

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        for board, here, _, share in self._shares(first, keys):
            self.scorers[board].rekey(stream, here, share)

    def _shares(self, first: int, keys: ScoringKeys) -> Iterator[tuple[int, int, slice, ScoringKeys]]:
        """The board, the position on it, which of the tokens, and their keys, for every part that is on one board."""
        for board, here, stretch in self._stretches(Run(first, len(keys.integers))):
            part = slice(stretch.first - first, stretch.first - first + stretch.tokens)
            tiles = slice(part.start // TILE, part.stop // TILE)
            yield board, here, part, ScoringKeys(keys.integers[part], keys.exponents[tiles])

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> AssembledTicket:
        of_board: list[list[Run]] = [[] for _ in self.scorers]
        counts = [0] * len(self.scorers)
        parts = []
        for run in runs:
            for board, here, stretch in self._stretches(run):
                mine = of_board[board]
                if mine and mine[-1].first + mine[-1].tokens == here:  # stretches of one board lie side by side there
                    mine[-1] = Run(mine[-1].first, mine[-1].tokens + stretch.tokens)
                else:
                    mine.append(Run(here, stretch.tokens))
                parts.append((board, counts[board], stretch.tokens))
                counts[board] += stretch.tokens
        tickets = [
            scorer.submit(stream, query, mine) if mine else None
            for scorer, mine in zip(self.scorers, of_board, strict=True)
        ]
        return _SharedTicket(runs, tickets, parts)

    def _stretches(self, run: Run) -> Iterator[tuple[int, int, Run]]:
        """The board, the position on it, and the tokens of every part of a run that is on one board."""
        boards, first, end = len(self.scorers), run.first, run.first + run.tokens
        while first < end:
            round_, within = divmod(first, STRETCH * boards)
            board, offset = divmod(within, STRETCH)
            tokens = min(end - first, STRETCH - offset)
            yield board, round_ * STRETCH + offset, Run(first, tokens)
            first += tokens


class _SharedTicket(AssembledTicket):
    """Scores of several boards, put together; ``parts`` in order: a board, where its ticket has them, how many."""

    def __init__(
        self, runs: Sequence[Run], tickets: Sequence[AssembledTicket | None], parts: Sequence[tuple[int, int, int]]
    ) -> None:
        super().__init__(runs)
        self._tickets, self._parts = tickets, parts
        self._taken = self._done = 0

    def advance(self, count: int) -> bool:
        while self._done < count:
            board, place, tokens = self._parts[self._taken]
            ticket = self._tickets[board]
            assert ticket is not None
            if not ticket.advance(place + tokens):
                return False
            self.scores[self._done : self._done + tokens] = ticket.scores[place : place + tokens]
            self._done += tokens
            self._taken += 1
        return True

    def cancel(self) -> None:
        for ticket in self._tickets:
            if ticket is not None:
                ticket.cancel()
