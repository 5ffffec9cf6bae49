"""What a head analysis adds up while the model runs: overlaps of sets, step by step, never whole attention matrices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.profiling.importance import pooled, top_mask
from hillinfer.profiling.similarity import Overlaps, pairwise
from hillinfer.profiling.stability import overlap_with


class HeadStatistics:
    """Per layer: the set A of each KV head after the prompt, and overlaps of every later step's sets.

    A is the top ``top_k`` of a softmax row over the prompt, mean over the group's query heads, pooled over ``kernel``
    positions.
    """

    def __init__(self, layers: int, top_k: int, kernel: int) -> None:
        self._top_k, self._kernel = top_k, kernel
        self._references: list[torch.Tensor | None] = [None] * layers
        self._with_prefill: list[list[npt.NDArray[np.float32]]] = [[] for _ in range(layers)]
        self._pairwise: list[list[Overlaps]] = [[] for _ in range(layers)]

    def add(self, layer: int, rows: torch.Tensor) -> None:
        """One query's rows [H, G, N] over the prompt: first that of the prompt's last token, then one per step."""
        sets = top_mask(pooled(rows.mean(1), self._kernel), self._top_k)
        reference = self._references[layer]
        if reference is None:
            self._references[layer] = sets
            return
        self._with_prefill[layer].append(overlap_with(reference, sets))
        self._pairwise[layer].append(pairwise(sets))

    @property
    def with_prefill(self) -> npt.NDArray[np.float32]:
        """float32 [steps, L, H]: overlaps with the prompt's own sets."""
        overlaps: npt.NDArray[np.float32] = np.array(self._with_prefill).transpose(1, 0, 2)
        return overlaps

    @property
    def between_heads(self) -> Overlaps:
        """float32 [steps, L, H, H]."""
        overlaps: Overlaps = np.array(self._pairwise).transpose(1, 0, 2, 3)
        return overlaps
