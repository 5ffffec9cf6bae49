"""The cold pool: the rows of all layers, read by ordinary NVMe reads whatever device scores their keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hillinfer.csd.cold import files
from hillinfer.csd.cold.reading import open_reader
from hillinfer.csd.cold.row_log import RowLog
from hillinfer.csd.cold.write_behind import WriteBehind
from hillinfer.csd.contract import ReadTicket, Rows, Stream
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import TILE, Geometry


class ColdRows:
    """A log of rows per layer in one folder, what writes them behind the step, and what reads them.

    create          make a missing folder (the default one)
    region_tokens   most tokens a sequence may have, rounded up to whole tiles
    """

    def __init__(self, geometry: Geometry, folder: Path, *, create: bool, region_tokens: int) -> None:
        self.geometry, self.folder = geometry, folder
        files.prepare_folder(folder, create=create)
        self.region_tokens = -(-region_tokens // TILE) * TILE
        self.reader = open_reader(geometry.row_bytes)
        self.writer = WriteBehind()
        self.logs: list[RowLog] = []
        try:
            for layer in range(geometry.layers):
                log = RowLog(layer, geometry.row_bytes, self.region_tokens, folder, self.writer, self.reader)
                self.logs.append(log)
        except BaseException:
            self.close()
            raise

    def streams(self) -> list[Stream]:
        """The streams that have tokens in the log."""
        return [Stream(log.layer, sequence) for log in self.logs for sequence in log.sequences]

    def length(self, stream: Stream) -> int:
        """Tokens of a stream in the log."""
        return self.logs[stream.layer].length(stream.sequence)

    def append(self, stream: Stream, first: int, rows: Rows) -> None:
        """Add the rows of whole tiles behind those the stream has; DeviceError for any others."""
        held = self.length(stream)
        if first != held or len(rows) % TILE or first % TILE:
            raise DeviceError(
                f"layer {stream.layer}: tokens {first}-{first + len(rows) - 1} are not the next whole tiles of a "
                f"log that holds {held} tokens"
            )
        if first + len(rows) > self.region_tokens:
            raise DeviceError(f"the device was opened for at most {self.region_tokens} tokens a sequence")
        self.logs[stream.layer].append(stream.sequence, rows)

    def read(self, stream: Stream, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Start reading the rows of ascending positions into out uint8 [n, row_bytes]."""
        return self.logs[stream.layer].read(stream.sequence, positions, out)

    def close(self) -> None:
        """Stop writing and give every file back. May be called twice."""
        self.writer.close()
        self.reader.close()
        for log in self.logs:
            log.close()
