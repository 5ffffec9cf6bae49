"""The driver of every board that runs the kernel: a cold pool on an ordinary drive, scores from the board."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from hillinfer.csd.cold.rows import ColdRows
from hillinfer.csd.contract import Cast, Counters, Record
from hillinfer.csd.device import TwoPartDevice
from hillinfer.csd.fallback import FallbackScorer
from hillinfer.csd.kernel.board import Board
from hillinfer.csd.kernel.scorer import KernelScorer, KernelSettings
from hillinfer.csd.scorer import Scorer
from hillinfer.csd.several import ByLayer, ByTokens, share_of_layers, share_of_tokens
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.keys import cast_keys


class KernelDevice(TwoPartDevice):
    """Rows in a log per layer; keys scored by ``qk_score`` on one board or several, which the device owns and closes.

    folder          the cold folder; ``create``: make it when missing
    region_tokens   most tokens a sequence may have
    record          called as ``record(name, thread, start, end)`` for each submission that is complete, for a trace
    fallback        let the software device take over when the boards fail (hillinfer.csd.fallback)
    cast            how the engine casts keys; None: as the kernel does, to the settings' format
    """

    def __init__(
        self,
        boards: Board | Sequence[Board],
        geometry: Geometry,
        folder: Path,
        *,
        create: bool,
        region_tokens: int,
        record: Record,
        settings: KernelSettings | None = None,
        fallback: bool = False,
        cast: Cast | None = None,
    ) -> None:
        settings = settings or KernelSettings()
        boards = [boards] if isinstance(boards, Board) else list(boards)
        with contextlib.ExitStack() as opened:
            for board in boards:
                opened.callback(board.close)
            rows = ColdRows(geometry, folder, create=create, region_tokens=region_tokens)
            opened.callback(rows.close)
            scorer = _scorer(boards, rows, record, settings)
            if fallback:
                key_format = settings.key_format
                scorer = FallbackScorer(scorer, rows, record, cast or (lambda _, keys: cast_keys(keys, key_format)))
            super().__init__(rows, scorer)
            opened.pop_all()


def _scorer(boards: Sequence[Board], rows: ColdRows, record: Record, settings: KernelSettings) -> Scorer:
    counters, count = Counters(), len(boards)

    def one(board: Board, geometry: Geometry, region_tokens: int) -> KernelScorer:
        return KernelScorer(
            board,
            geometry,
            rows.folder,
            region_tokens=region_tokens,
            record=record,
            settings=settings,
            counters=counters,
        )

    geometry, tokens = rows.geometry, rows.region_tokens
    if count == 1:
        return one(boards[0], geometry, tokens)
    if settings.split == "layer":
        shares = [share_of_layers(geometry, i, count) for i in range(count)]
        return ByLayer([one(board, share, tokens) for board, share in zip(boards, shares, strict=True)], counters)
    regions = [share_of_tokens(tokens, i, count) for i in range(count)]
    return ByTokens([one(board, geometry, region) for board, region in zip(boards, regions, strict=True)], counters)
