"""The driver of every board that runs the kernel: a cold pool on an ordinary drive, scores from the board."""

from __future__ import annotations

from pathlib import Path

from hillinfer.csd.cold.rows import ColdRows
from hillinfer.csd.contract import Record
from hillinfer.csd.device import TwoPartDevice
from hillinfer.csd.kernel.board import Board
from hillinfer.csd.kernel.scorer import KernelScorer, KernelSettings
from hillinfer.kv.geometry import Geometry


class KernelDevice(TwoPartDevice):
    """Rows in a log per layer; keys scored by ``qk_score`` on a board, which the device owns and closes.

    folder          the cold folder; ``create``: make it when missing
    region_tokens   most tokens a sequence may have
    record          called as ``record(name, thread, start, end)`` for each submission that is complete, for a trace
    """

    def __init__(
        self,
        board: Board,
        geometry: Geometry,
        folder: Path,
        *,
        create: bool,
        region_tokens: int,
        record: Record,
        settings: KernelSettings | None = None,
    ) -> None:
        try:
            rows = ColdRows(geometry, folder, create=create, region_tokens=region_tokens)
        except BaseException:
            board.close()
            raise
        try:
            scorer = KernelScorer(
                board, geometry, folder, region_tokens=rows.region_tokens, record=record, settings=settings
            )
        except BaseException:
            board.close()
            rows.close()
            raise
        super().__init__(rows, scorer)
