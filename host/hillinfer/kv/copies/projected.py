"""INT4 keys on a few axes: those along which this stream's queries tell its keys apart.

Per KV head, with Q the queries' second moment and C the keys' covariance: L = Cholesky(Q), U = the principal axes of
(k − μ)·L in falling order. Keys become (k − μ)·L·U and queries (L·U)⁻¹·q, which leaves q·(k − μ) as it was and puts
what varies of it into the leading dimensions. Only those are kept.
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

_BITS = 20  # of keys and axes as whole numbers: products of 2·20 bits, summed over d < 2^13, are exact in float64
_HEADROOM = 4.0  # keys may grow to so many times the largest that was seen
_RIDGE = 0.1  # of the queries' own power per rotary plane, added to their second moment
_EPSILON = 1e-3  # of its mean, so that directions no query has taken are not lost altogether


class ProjectedCopy(ScoringCopy):
    """k' = (k − mean)·axes.

    Keys and axes are rounded to whole numbers first, so that sums are exact in any order: a key's integers are the
    same whether it is cast alone, with its tile, or with a whole prompt, on any processor.

    mean      float64 [H, d]
    axes      float64 [H, d, d'], in integer steps
    inverse   float64 [H, d', d]: for d' = d that of ``axes``
    largest   float64 [H]: of the keys' elements
    """

    def __init__(self, mean: Float, axes: Float, inverse: Float, largest: Float) -> None:
        self._mean, self._inverse = mean, inverse
        most = np.maximum(_HEADROOM * (largest + np.abs(mean).max(1)), 1e-30)
        self._unit = np.exp2(_BITS - np.ceil(np.log2(most)))[:, None]  # whole numbers of a key per one
        spread = np.exp2(np.ceil(np.log2(np.maximum(np.abs(axes).max(1), 1e-300))))  # [H, d'], powers of two
        self._axes = np.rint(axes / spread[:, None] * 2.0**_BITS)
        self._back = spread * 2.0**-_BITS / self._unit

    def cast(self, keys: torch.Tensor) -> ScoringKeys:
        return quantise(self._project(finite(keys)).transpose(1, 0, 2))

    def cast_newest(self, key: torch.Tensor, exponents: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
        return quantise_newest(self._project(finite(key[:, None]))[:, 0], exponents)

    def _project(self, keys: Float) -> Float:
        """float64 [H, n, d'] of keys float64 [H, n, d]."""
        whole = np.rint((keys - self._mean[:, None]) * self._unit[:, None]).clip(-(2.0**_BITS), 2.0**_BITS)
        projected: Float = (whole @ self._axes) * self._back[:, None]
        return projected

    def query(self, query: Query) -> tuple[Query, npt.NDArray[np.float32]]:
        shift = (query * self._mean[:, None]).sum(-1)
        seen = query.astype(np.float64) @ self._inverse.transpose(0, 2, 1)
        return seen.astype(np.float32), shift.astype(np.float32)

    @property
    def nbytes(self) -> int:
        total: int = self._mean.nbytes + self._axes.nbytes + self._inverse.nbytes
        return total


class Projected(CopyKind):
    """Half a byte for each of the leading dimensions: a half, a quarter or an eighth of all."""

    key_format: ClassVar[str] = "int4"
    part: ClassVar[int]
    growth: ClassVar[float] = 1 / 16

    def key_dim(self, head_dim: int) -> int:
        return max(1, head_dim // self.part)

    def fit(self, keys: KeyMoments, queries: Float) -> ProjectedCopy:
        kept = self.key_dim(queries.shape[-1])
        lower = np.linalg.cholesky(_second_moment(queries))
        spread, turned = np.linalg.eigh(lower.transpose(0, 2, 1) @ keys.covariance @ lower)  # ascending
        axes, back = lower @ turned[:, :, ::-1], turned[:, :, ::-1].transpose(0, 2, 1) @ np.linalg.inv(lower)
        deviation = np.sqrt(np.maximum(spread[:, ::-1], 1e-12 * np.maximum(spread[:, -1:], 1e-30)))
        unit = STEP * deviation
        return ProjectedCopy(
            keys.mean, (axes / unit[:, None])[:, :, :kept], (back * unit[:, :, None])[:, :kept], keys.largest
        )


def _second_moment(queries: Float) -> Float:
    """float64 [H, d, d] of queries float64 [H, n, d], with a little of what queries further on may be.

    Rotary positions turn a query within planes of channels i and i + d/2. A few hundred queries have hardly turned in
    the slow planes, and axes that go by them alone lose the tokens to come: the power of each plane is added, spread
    evenly over its two directions.
    """
    heads, count, dim = queries.shape
    moment = queries.transpose(0, 2, 1) @ queries / max(1, count)
    power = moment.diagonal(axis1=1, axis2=2)
    if dim % 2 == 0:
        halves = power.reshape(heads, 2, dim // 2).mean(1)
        power = np.concatenate([halves, halves], 1)
    ridge = _RIDGE * power + _EPSILON * power.mean(1, keepdims=True) + 1e-30
    total: Float = moment + ridge[:, :, None] * np.eye(dim)
    return total


class ProjectedHalf(Projected):
    name: ClassVar[str] = "projected/2"
    part: ClassVar[int] = 2


class ProjectedQuarter(Projected):
    name: ClassVar[str] = "projected/4"
    part: ClassVar[int] = 4


class ProjectedEighth(Projected):
    name: ClassVar[str] = "projected/8"
    part: ClassVar[int] = 8
