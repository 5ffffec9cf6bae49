"""Whether a pivot still looks where it did: the monitor behind HeteroCache's retrieval."""

from __future__ import annotations

import statistics
from collections import deque

import torch


class DriftMonitor:
    """Compares what matters to a pivot at each step with a reference, over the last ``window`` steps.

    reference   bool [N]: its most important positions when the satellites were last filled
    threshold   the median overlap under which it has drifted
    """

    def __init__(self, reference: torch.Tensor, window: int, threshold: float) -> None:
        self.reference = reference
        self._threshold = threshold
        self._overlaps: deque[float] = deque(maxlen=window)

    def observe(self, important: torch.Tensor) -> bool:
        """Take in a step's most important positions, bool [N]; True if the pivot has drifted.

        Then they are the new reference, and a new window begins.
        """
        size = int(self.reference.sum())
        self._overlaps.append(int((self.reference & important).sum()) / size if size else 1.0)
        if len(self._overlaps) < (self._overlaps.maxlen or 1) or statistics.median(self._overlaps) >= self._threshold:
            return False
        self.reference = important
        self._overlaps.clear()
        return True
