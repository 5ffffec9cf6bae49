"""Similarity of the heads of one layer: how much of what matters to one matters to another, too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

Overlaps = npt.NDArray[np.float32]


def pairwise(sets: torch.Tensor) -> Overlaps:
    """float32 [H, H]: |A_h ∩ A_h'| / |A_h| of the sets bool [H, n] of one layer; 1 on the diagonal."""
    numbers = sets.float()
    shared = numbers @ numbers.T
    overlap: Overlaps = (shared / shared.diagonal()[:, None]).cpu().numpy()
    return overlap


def similarity(overlaps: Overlaps) -> Overlaps:
    """S_sim float32 [..., H]: the median over the steps of the largest overlap with another head.

    overlaps   [steps, ..., H, H], pairwise. With one head there is no other: 0.
    """
    heads = overlaps.shape[-1]
    others = np.where(np.eye(heads, dtype=bool), np.float32(0), overlaps)
    median: Overlaps = np.median(others.max(-1), axis=0).astype(np.float32)
    return median


def typical(overlaps: Overlaps, step: int | None = None) -> Overlaps:
    """The pairwise overlap [..., H, H] that draws edges: the median over the steps of [steps, ..., H, H].

    step   the authors' published code looks at one step instead: this one (−1: the last)
    """
    edges: Overlaps = np.median(overlaps, axis=0).astype(np.float32) if step is None else overlaps[step]
    return edges
