"""The query of one step as the kernel takes it: INT8, quantised once, with its scale folded into integers.

kernel.md, "What it computes": for each query head, s = Σ q8·k8, t = (s·m) >> (r + e) is the logit in 1/256 nat,
and u = t − o what ranks. Here m, r and o are made from the query's scale, the softmax scale and the head's
log-normaliser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hillinfer import _native

UNITS_PER_NAT = 256
INT16_MAX = 32767
_O_MAX = 2**23 - 1


@dataclass(frozen=True)
class QuantisedQuery:
    """One layer's queries: q8 int8 [H, G, d]; m int32 (16 bits used), r int32 (0–63), o int32 (24 bits used) [H, G].

    reduce   "max" or "sum" over the heads in ``heads``
    heads    the KV heads that take part (all of them, or one where each head selects its own set)
    """

    q8: npt.NDArray[np.int8]
    m: npt.NDArray[np.int32]
    r: npt.NDArray[np.int32]
    o: npt.NDArray[np.int32]
    reduce: str
    heads: tuple[int, ...]

    @cached_property
    def native(self) -> _native.Query:
        """What the native scorer takes."""
        return _native.Query(self.q8, self.m, self.r, self.o, list(self.heads), self.reduce == "sum")

    def per_head(self) -> list[QuantisedQuery]:
        """The same query for each KV head on its own."""
        return [replace(self, heads=(head,)) for head in self.heads]


def quantise_query(
    query: npt.NDArray[np.float32],
    scaling: float,
    normaliser: npt.NDArray[np.float32] | None,
    lowest_exponent: npt.NDArray[np.int8],
    reduce: str,
) -> QuantisedQuery:
    """Quantise a query float32 [H, G, d].

    scaling           what the model multiplies q·k with (1/√d as a rule)
    normaliser        z float32 [H, G], nats: score = max over heads of (logit − z); None: z = 0 (raw scores)
    lowest_exponent   int8 [H], the smallest exponent among the cached keys: bounds the raw sum
    reduce            "max" or "sum". In raw modes all heads are shifted right by the smallest common amount that
                      cannot saturate the int16 score (kernel.md, "Range").
    """
    heads, group, _ = query.shape
    largest = np.abs(query).max(-1)
    step = np.maximum(largest, np.float32(1e-30)) / np.float32(127)
    q8 = np.rint(query / step[..., None]).astype(np.int8)
    fraction, exponent = np.frexp(step.astype(np.float64) * abs(scaling) * UNITS_PER_NAT)
    m = np.minimum(np.rint(fraction * 65536), 65535).astype(np.int32)
    r = 16 - exponent.astype(np.int32)
    m = np.where(r < 0, 65535, np.where(r > 63, 0, m)).astype(np.int32)  # a logit off the scale saturates or is 0
    r = np.clip(r, 0, 63).astype(np.int32)
    if scaling < 0:
        q8 = -q8
    if normaliser is not None:
        o = np.clip(np.rint(normaliser * UNITS_PER_NAT), -_O_MAX, _O_MAX).astype(np.int32)
    else:
        o = np.zeros((heads, group), np.int32)
        r = np.minimum(r + _common_shift(q8, m, r, lowest_exponent, reduce), 63)
    return QuantisedQuery(q8, m, r, o, reduce, tuple(range(heads)))


def _common_shift(
    q8: npt.NDArray[np.int8],
    m: npt.NDArray[np.int32],
    r: npt.NDArray[np.int32],
    lowest_exponent: npt.NDArray[np.int8],
    reduce: str,
) -> int:
    """The smallest right shift, the same for all heads, after which no score can leave int16."""
    shift = np.clip(r + lowest_exponent.astype(np.int32)[:, None], 0, 40)
    bound = np.abs(q8.astype(np.int32)).sum(-1) * 127.0 * m * np.exp2(-shift.astype(np.float64))
    worst = float(bound.sum() if reduce == "sum" else bound.max(initial=0.0))
    return max(0, int(np.ceil(np.log2(worst / INT16_MAX)))) if worst > INT16_MAX else 0
