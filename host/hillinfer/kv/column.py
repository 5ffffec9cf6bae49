"""A NumPy array that grows along its first axis without copying at every step."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


class Column(Generic[Scalar]):
    """Rows of a fixed shape and type; ``values`` is a view of those in use, new ones are filled with ``fill``."""

    def __init__(self, dtype: type[Scalar], shape: tuple[int, ...] = (), fill: int = 0) -> None:
        self._fill = fill
        self._data: npt.NDArray[Scalar] = np.full((64, *shape), fill, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> npt.NDArray[Scalar]:
        return self._data[: self._length]

    def resize(self, length: int) -> None:
        """Grow to ``length`` rows (never shrinks)."""
        if length > len(self._data):
            bigger = np.full(
                (max(length, len(self._data) * 3 // 2), *self._data.shape[1:]), self._fill, self._data.dtype
            )
            bigger[: self._length] = self.values
            self._data = bigger
        self._length = max(self._length, length)

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        start = self._length
        self.resize(start + len(rows))
        self._data[start : start + len(rows)] = rows
