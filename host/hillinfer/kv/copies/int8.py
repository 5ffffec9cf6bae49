"""INT8 keys as the kernel casts FP16 ones: nothing is fitted, and the query stays as it is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.copies.base import CopyKind, Query, ScoringCopy
from hillinfer.kv.copies.moments import KeyMoments
from hillinfer.kv.keys import LIMITS, ScoringKeys, cast_keys, exponents_for


class Int8Copy(ScoringCopy):
    """Largest exponents with which the keys of a tile and head fit (``kv/keys.py``)."""

    def cast(self, keys: torch.Tensor) -> ScoringKeys:
        return cast_keys(keys, "int8")

    def cast_newest(self, key: torch.Tensor, exponents: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
        half = key.to(torch.float16).float().cpu().numpy()
        if not np.isfinite(half).all() or (exponents_for(np.abs(half).max(-1), LIMITS["int8"]) < exponents).any():
            return None
        whole: npt.NDArray[np.int8] = np.rint(np.ldexp(half, exponents[:, None])).clip(-127, 127).astype(np.int8)
        return whole

    def query(self, query: Query) -> tuple[Query, None]:
        return query, None


class Int8(CopyKind):
    """One byte per element."""

    name: ClassVar[str] = "int8"
    key_format: ClassVar[str] = "int8"
    growth: ClassVar[float] = float("inf")
    unfitted = Int8Copy()

    def key_dim(self, head_dim: int) -> int:
        return head_dim

    def fit(self, keys: KeyMoments, queries: npt.NDArray[np.float64]) -> Int8Copy:  # noqa: ARG002
        return Int8Copy()
