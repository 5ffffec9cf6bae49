"""INT4 keys, centred: of each channel its mean is taken off, and its own spread is the unit.

Keys have channels that hardly vary around a large value, which is the same for all tokens: it belongs into the head's
offset, not into four bits. Each channel's unit goes into the query.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.copies.base import CopyKind, Query, ScoringCopy
from hillinfer.kv.copies.moments import Float, KeyMoments, finite
from hillinfer.kv.copies.steps import STEP, quantise, quantise_newest
from hillinfer.kv.keys import ScoringKeys


class CentredCopy(ScoringCopy):
    """k' = (k − mean) / unit, both float64 [H, d]."""

    def __init__(self, mean: Float, unit: Float) -> None:
        self._mean, self._unit = mean, unit

    def cast(self, keys: torch.Tensor) -> ScoringKeys:
        return quantise((finite(keys.transpose(0, 1)) - self._mean) / self._unit)

    def cast_newest(self, key: torch.Tensor, exponents: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
        return quantise_newest((finite(key) - self._mean) / self._unit, exponents)

    def query(self, query: Query) -> tuple[Query, npt.NDArray[np.float32]]:
        shift = (query * self._mean[:, None]).sum(-1)
        return (query * self._unit[:, None]).astype(np.float32), shift.astype(np.float32)

    @property
    def nbytes(self) -> int:
        return self._mean.nbytes + self._unit.nbytes


class Centred(CopyKind):
    """Half a byte per element, all of them."""

    name: ClassVar[str] = "int4"
    key_format: ClassVar[str] = "int4"
    growth: ClassVar[float] = 0.5

    def key_dim(self, head_dim: int) -> int:
        return head_dim

    def fit(self, keys: KeyMoments, queries: Float) -> CentredCopy:  # noqa: ARG002
        variance = keys.covariance.diagonal(axis1=1, axis2=2)
        floor = 1e-12 * np.maximum(variance.max(1, keepdims=True), 1e-12)
        return CentredCopy(keys.mean, STEP * np.sqrt(np.maximum(variance, floor)))
