"""First and second moments of keys, gathered piece by piece."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

Float = npt.NDArray[np.float64]


class KeyMoments:
    """Mean, covariance and range of the keys of each KV head, in float64 whatever they come in."""

    def __init__(self, kv_heads: int, head_dim: int) -> None:
        self.count = 0
        self._sum = np.zeros((kv_heads, head_dim))
        self._products = np.zeros((kv_heads, head_dim, head_dim))
        self.largest = np.zeros(kv_heads)
        """The largest magnitude, float64 [H]."""

    def add(self, keys: torch.Tensor) -> None:
        """Count keys [H, n, d] in; one that is not finite counts as zero."""
        values = finite(keys)
        self.count += values.shape[1]
        self._sum += values.sum(1)
        self._products += values.transpose(0, 2, 1) @ values
        self.largest = np.maximum(self.largest, np.abs(values).max((1, 2), initial=0.0))

    @property
    def mean(self) -> Float:
        """float64 [H, d]"""
        return self._sum / max(1, self.count)

    @property
    def covariance(self) -> Float:
        """float64 [H, d, d]"""
        mean = self.mean
        return self._products / max(1, self.count) - mean[:, :, None] * mean[:, None, :]


def finite(keys: torch.Tensor) -> Float:
    """Keys as float64, NaN as 0, infinities as the largest FP16."""
    values = keys.detach().cpu().to(torch.float64).nan_to_num_(nan=0.0, posinf=65504.0, neginf=-65504.0)
    result: Float = values.numpy()
    return result
