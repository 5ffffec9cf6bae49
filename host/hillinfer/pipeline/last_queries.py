"""The last queries of a stream, to which a scoring copy is fitted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.geometry import Geometry

_KEPT = 128  # tokens: more fit no better, and those of long ago less well


class LastQueries:
    """A ring of queries, in FP16: what they are needed for is a second moment."""

    def __init__(self, geometry: Geometry) -> None:
        self._ring = np.zeros((geometry.kv_heads, _KEPT, geometry.group, geometry.head_dim), np.float16)
        self._seen = 0

    def add(self, query: torch.Tensor) -> None:
        """Add the queries [H, G, n, d] of the next n tokens."""
        fresh = query[:, :, -_KEPT:].to(torch.float16).nan_to_num_().cpu().numpy()
        count = query.shape[2]
        places = np.arange(self._seen + count - fresh.shape[2], self._seen + count) % _KEPT
        self._ring[:, places] = fresh.transpose(0, 2, 1, 3)
        self._seen += count

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """float64 [H, n·G, d], from the oldest on."""
        held = min(self._seen, _KEPT)
        places = np.arange(self._seen - held, self._seen) % _KEPT
        ordered = self._ring[:, places].astype(np.float64)
        return ordered.reshape(ordered.shape[0], -1, ordered.shape[3])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._ring.nbytes
