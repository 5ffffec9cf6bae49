"""The software device: the driver contract on an ordinary disk, bit-exact with the kernel."""

from __future__ import annotations

from pathlib import Path

from hillinfer.csd.cold.rows import ColdRows
from hillinfer.csd.contract import Record
from hillinfer.csd.device import TwoPartDevice
from hillinfer.csd.scorer import Scorer
from hillinfer.csd.software.scorer import SoftwareScorer
from hillinfer.csd.software.streaming import StreamingScorer
from hillinfer.kv.geometry import Geometry


class SoftwareDevice(TwoPartDevice):
    """Rows in a log per layer, a scoring copy in memory, one scoring thread, a pool of reading and writing threads.

    region_tokens   most tokens a sequence may have
    streamed        no scoring copy: keys are read from the cold pool for every query
    record          called as ``record(name, thread, start, end)`` for each launch that is complete, for a trace
    """

    def __init__(
        self,
        geometry: Geometry,
        folder: Path,
        *,
        create: bool,
        region_tokens: int,
        record: Record,
        streamed: bool = False,
    ) -> None:
        rows = ColdRows(geometry, folder, create=create, region_tokens=region_tokens)
        try:
            scorer: Scorer
            if streamed:
                scorer = StreamingScorer(rows, record=record)
            else:
                scorer = SoftwareScorer(geometry, region_tokens=rows.region_tokens, record=record)
        except BaseException:
            rows.close()
            raise
        super().__init__(rows, scorer)
