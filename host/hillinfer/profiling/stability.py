"""Stability of a head over time: how much of what mattered to it at prefill still does while it generates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch


def overlap_with(reference: torch.Tensor, now: torch.Tensor) -> npt.NDArray[np.float32]:
    """float32 [H]: |A_now ∩ A_reference| / |A_reference| per head of two sets, bool [H, n] each."""
    shared = (reference & now).sum(-1).float()
    overlap: npt.NDArray[np.float32] = (shared / reference.sum(-1).float()).cpu().numpy()
    return overlap


def stability(overlaps: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """S_stable float32 [...]: the median over the steps of overlaps [steps, ...] with the prefill's sets."""
    median: npt.NDArray[np.float32] = np.median(overlaps, axis=0).astype(np.float32)
    return median
