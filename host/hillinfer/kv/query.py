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


@dataclass(frozen=True)
class QuantisedQuery:
    """One layer's queries: q8 int8 [H, G, d]; m int32 (16 bits used), r int32 (0–63), o int32 (24 bits used) [H, G].

    reduce   "max" or "sum" over the heads in ``heads``
    heads    the KV heads that take part (all of them, or one where each head selects its own set)
    key_format   of the keys it is for, "int8" or "int4"
    """

    q8: npt.NDArray[np.int8]
    m: npt.NDArray[np.int32]
    r: npt.NDArray[np.int32]
    o: npt.NDArray[np.int32]
    reduce: str
    heads: tuple[int, ...]
    key_format: str = "int8"

    @cached_property
    def native(self) -> _native.Query:
        """What the native scorer takes."""
        return self.native_for(self.key_format)

    def native_for(self, key_format: str) -> _native.Query:
        """What the native scorer takes, for keys of "int8", "int4" or "fp16"."""
        return _native.Query(self.q8, self.m, self.r, self.o, list(self.heads), self.reduce == "sum", key_format)

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
    heads = query.shape[0]
    q8, m, r, o = _native.quantise(query, scaling, normaliser, lowest_exponent, reduce == "sum")
    return QuantisedQuery(q8, m, r, o, reduce, tuple(range(heads)))
