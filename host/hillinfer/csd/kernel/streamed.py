"""Keys that stay on the drive: read for every query, straight into the board's memory where the drive can.

A ring of buffers: while the kernel scores the keys in one, reads fill the others. With p2p buffers the bytes go from
drive to board and the host never sees them, so nobody checks them: a wrong key can only cost a token its place in the
ranking, as the rows that are attended are read and checked on their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from hillinfer.csd.cold.files import ColdFile
from hillinfer.csd.cold.write_behind import WriteBehind
from hillinfer.csd.contract import Counters, Run, Stream
from hillinfer.csd.kernel.board import Board, Buffer, Part, Port
from hillinfer.csd.kernel.buffers import BufferPool
from hillinfer.csd.kernel.keys import Beats, Held, KeyStore
from hillinfer.errors import CorruptRecordError
from hillinfer.kv.geometry import BLOCK, TILE

PIECE_BYTES = 4 << 20
RING = 8


class KeyFile:
    """The keys of one layer as the kernel reads them, each sequence in its own region of a sparse file."""

    def __init__(self, layer: int, row_bytes: int, region_tokens: int, folder: Path, writer: WriteBehind) -> None:
        self.layer, self._row_bytes, self._region = layer, row_bytes, region_tokens * row_bytes
        self.file = ColdFile(folder, direct=True)
        self._writer = writer
        self._writing: dict[int, list[Future[None]]] = {}

    def append(self, sequence: int, first: int, keys: Beats) -> None:
        """Write the keys of the tokens first…, bytes [n · row_bytes], behind the step."""
        writing = [write for write in self._writing.get(sequence, ()) if not write.done()]
        offset = sequence * self._region + first * self._row_bytes
        self._writing[sequence] = [*writing, *self._writer.write(self.file, keys, offset)]

    def writing(self, sequence: int) -> list[Future[None]]:
        """Writes that must be done before the sequence can be read."""
        return self._writing.get(sequence, [])

    def read(self, sequence: int, piece: Run, out: Beats, writing: list[Future[None]]) -> None:
        """Fill ``out`` with the keys of a piece once they are written. CorruptRecordError: they are not all there."""
        for write in writing:
            write.result()
        got = self.file.read(out, sequence * self._region + piece.first * self._row_bytes)
        if got < len(out):
            raise CorruptRecordError(
                f"the key log of layer {self.layer}, sequence {sequence} is shorter than what was written: "
                f"{got} of {len(out)} bytes from token {piece.first} on. Check the disk, or use another cold folder "
                "(--cold-dir)"
            )


class _Reading(Held):
    """A piece on its way into a buffer of the ring."""

    def __init__(self, buffer: Buffer, nbytes: int, reading: Future[None], keys: StreamedKeys, direct: bool) -> None:
        self._buffer, self._nbytes, self._future, self._keys, self._direct = buffer, nbytes, reading, keys, direct

    def ready(self) -> bool:
        return self._future.done()

    def part(self) -> Part:
        self._future.result()
        self._keys.arrived(self._buffer, self._nbytes, direct=self._direct)
        return Part(self._buffer)

    def release(self, *, usable: bool = True) -> None:
        if not self._future.cancel():  # a read that has begun must end before the buffer has another use
            self._future.exception()
        self._keys.ring.give(self._buffer, usable=usable)


class StreamedKeys(KeyStore):
    """A file per layer, and a ring of ``ring`` buffers of up to ``piece_bytes`` for all of them.

    counters   p2p_bytes and host_key_bytes are counted here
    """

    def __init__(
        self,
        board: Board,
        layers: int,
        row_bytes: int,
        folder: Path,
        region_tokens: int,
        counters: Counters,
        *,
        piece_bytes: int = PIECE_BYTES,
        ring: int = RING,
    ) -> None:
        self._layers, self._row_bytes, self._counters, self._board = layers, row_bytes, counters, board
        unit = BLOCK if piece_bytes >= BLOCK * row_bytes else TILE
        self.piece_tokens = max(1, piece_bytes // (unit * row_bytes)) * unit
        self.ring = BufferPool(board, self.piece_tokens * row_bytes, Port.KEYS, ring, p2p=board.p2p)
        self._ring_bytes = ring * self.ring.nbytes
        self._writer = WriteBehind()
        self._readers = ThreadPoolExecutor(ring, thread_name_prefix="key-read")
        self.files: list[KeyFile] = []
        try:
            for layer in range(layers):
                self.files.append(KeyFile(layer, row_bytes, region_tokens, folder, self._writer))
        except BaseException:
            self.stop()
            raise

    def board_bytes(self, tokens: int, sequences: int) -> int:  # noqa: ARG002
        return self._ring_bytes

    def file_bytes(self, tokens: int, sequences: int) -> int:
        return self._layers * sequences * tokens * self._row_bytes

    def append(self, stream: Stream, first: int, keys: Beats) -> None:
        self.files[stream.layer].append(stream.sequence, first, keys)

    def replace(self, stream: Stream, first: int, keys: Beats) -> None:
        self.append(stream, first, keys)

    def cut(self, run: Run) -> Iterator[Run]:
        for first in range(run.first, run.first + run.tokens, self.piece_tokens):
            yield Run(first, min(self.piece_tokens, run.first + run.tokens - first))

    def fetch(self, stream: Stream, piece: Run) -> Held | None:
        if not self.ring.available():
            return None
        file, buffer = self.files[stream.layer], self.ring.take()
        nbytes = piece.tokens * self._row_bytes
        out = buffer.host[:nbytes]
        reading = self._readers.submit(file.read, stream.sequence, piece, out, file.writing(stream.sequence))
        return _Reading(buffer, nbytes, reading, self, file.file.direct)

    def arrived(self, buffer: Buffer, nbytes: int, *, direct: bool) -> None:
        """Bytes were read into a buffer of the ring; bring them to the board where they are not there yet."""
        if self._board.p2p and direct:
            self._counters.p2p_bytes += nbytes
        else:
            self._counters.host_key_bytes += nbytes
        buffer.to_board(0, nbytes)

    def flush(self) -> None:
        self._writer.drain()

    def stop(self) -> None:
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._writer.close()
        for each in self.files:
            each.file.close()
