"""Where the keys of the scoring copy are, and how a run of them becomes pieces that one launch can score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hillinfer.csd.contract import Run, Stream
from hillinfer.csd.kernel.board import Part

Beats = npt.NDArray[np.uint8]


class Held(ABC):
    """Keys of one piece, on the board or on their way there; held until ``release``."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether ``part`` would return at once."""

    @abstractmethod
    def part(self) -> Part:
        """Where the kernel finds them; waits until they are there, and raises what went wrong on the way."""

    @abstractmethod
    def release(self, *, usable: bool = True) -> None:
        """The launch is done. Not ``usable``: nobody knows whether the kernel still reads them."""


class KeyStore(ABC):
    """The scoring keys of every stream, packed in the kernel's layout.

    piece_tokens   most tokens of a piece
    """

    piece_tokens: int

    @abstractmethod
    def board_bytes(self, tokens: int, sequences: int) -> int:
        """Memory of the board for the keys of so many tokens in each sequence, all layers together."""

    @abstractmethod
    def file_bytes(self, tokens: int, sequences: int) -> int:
        """Bytes of the cold folder for them."""

    @abstractmethod
    def append(self, stream: Stream, first: int, keys: Beats) -> None:
        """Add the keys of whole tiles, bytes [n · row_bytes], behind those the stream has."""

    @abstractmethod
    def replace(self, stream: Stream, first: int, keys: Beats) -> None:
        """Put other keys in the place of those of whole tiles first…, while none of them is being read or written."""

    @abstractmethod
    def cut(self, run: Run) -> Iterator[Run]:
        """The pieces of a run, in order."""

    @abstractmethod
    def fetch(self, stream: Stream, piece: Run) -> Held | None:
        """Begin to bring a piece to where the kernel reads; None while there is no room for one more."""

    @abstractmethod
    def flush(self) -> None:
        """Until what goes to a file is there."""

    @abstractmethod
    def stop(self) -> None:
        """Stop work of its own, give files back; the board's memory is given back by the board."""
