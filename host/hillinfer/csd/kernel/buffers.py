"""Buffers of the board that are used again and again, and parts of them."""

from __future__ import annotations

from hillinfer.csd.kernel.board import Board, Buffer, Port
from hillinfer.errors import DeviceFull

PAGE = 4096
"""Alignment of a Part on every board."""

_FIRST_BYTES = 1 << 20  # of an arena's first block, about


def pages(nbytes: int) -> int:
    """nbytes rounded up to whole pages."""
    return -(-nbytes // PAGE) * PAGE


class BufferPool:
    """Buffers of one size and port. One that is given back is taken again before a new one is made. The board takes
    back all of them when it closes.

    most   buffers that may be out at once
    """

    def __init__(self, board: Board, nbytes: int, port: Port, most: int, *, p2p: bool = False) -> None:
        self._board, self.nbytes, self._port, self._most, self._p2p = board, pages(nbytes), port, most, p2p
        self._free: list[Buffer] = []
        self._out = 0

    def available(self) -> bool:
        """Whether one more may be taken. With no room for a new one it waits for those there are; DeviceFull: none."""
        if self._free:
            return True
        if self._out >= self._most:
            return False
        try:
            self._free.append(self._board.allocate(self.nbytes, self._port, p2p=self._p2p))
        except DeviceFull:
            if not self._out:
                raise
            return False
        return True

    def take(self) -> Buffer:
        """A buffer that is available, with whatever the last user left in it."""
        self._out += 1
        return self._free.pop()

    def give(self, buffer: Buffer, *, usable: bool = True) -> None:
        """Give one back. Not ``usable``: something on the board may still write into it, so it is never used again."""
        self._out -= 1
        if usable:
            self._free.append(buffer)


class Arena:
    """Memory for keys that stay: taken in pieces, given back when the board closes.

    It grows by blocks that double from one to ``block_bytes``, as every buffer of a card costs a file descriptor or
    more; all of them multiples of ``unit``, as is what is taken, so that little is left over.
    """

    def __init__(self, board: Board, unit: int, block_bytes: int) -> None:
        self._board, self._block_bytes = board, block_bytes
        self._first = max(1, _FIRST_BYTES // unit) * unit
        self._held = 0
        self._free: list[tuple[Buffer, int, int]] = []  # buffer, offset, bytes

    def take(self, nbytes: int) -> tuple[Buffer, int]:
        """A buffer and an offset into it, from which on ``nbytes`` are free. DeviceFull when there is no room."""
        nbytes = pages(nbytes)
        place = next((i for i, (_, _, room) in enumerate(self._free) if room >= nbytes), None)
        if place is None:
            buffer, offset = self._grow(nbytes, min(self._block_bytes, max(self._first, self._held))), 0
            room = buffer.nbytes
        else:
            buffer, offset, room = self._free.pop(place)
        if room > nbytes:
            self._free.append((buffer, offset + nbytes, room - nbytes))
        return buffer, offset

    def _grow(self, least: int, wanted: int) -> Buffer:
        # Where the board has p2p, its memory is reached without a mirror: keys then take no host memory.
        p2p = self._board.p2p
        try:
            buffer = self._board.allocate(max(least, wanted), Port.KEYS, p2p=p2p)
        except DeviceFull:
            if wanted <= least:
                raise
            buffer = self._board.allocate(least, Port.KEYS, p2p=p2p)
        self._held += buffer.nbytes
        return buffer
