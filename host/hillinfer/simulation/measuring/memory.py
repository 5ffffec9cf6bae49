"""How fast this machine's memory is read, and rows brought together out of it."""

from __future__ import annotations

import numpy as np
import torch

from hillinfer import _native
from hillinfer.simulation.measuring.probe import Probe

_BYTES = 256 << 20  # more than any cache


class MemoryProbe(Probe):
    """read: seconds of all cores for ``_BYTES``; gather: of one thread for a tenth of those, rows apart."""

    label = "memory"

    def __init__(self, row_bytes: int, cores: int) -> None:
        super().__init__()
        self._words = np.zeros(_BYTES // 8, np.uint64)
        self._pool = _native.ThreadPool(cores)
        self._rows = torch.from_numpy(
            self._words.view(np.uint8)[: _BYTES // row_bytes * row_bytes].reshape(-1, row_bytes)
        )
        self._random = np.random.default_rng(4)

    def step(self) -> None:
        self.take("read", lambda: self._pool.read_words(self._words))
        places = np.sort(self._random.choice(len(self._rows), len(self._rows) // 10, replace=False))
        index = torch.from_numpy(places)
        self.take("gather", lambda: self._rows.index_select(0, index))

    @property
    def bandwidth(self) -> float:
        """Bytes per second that can be read."""
        return self._words.nbytes / self.median("read")

    @property
    def gather(self) -> float:
        """Bytes of rows per second."""
        return len(self._rows) // 10 * self._rows.shape[1] / self.median("gather")
