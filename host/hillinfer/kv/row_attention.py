"""Attention of one new token to selected rows, wherever they lie, added as they come to hand.

What is in memory is looked at while the rest is still being read. On the CPU the native code reads rows in place, so
that nothing is gathered; on another device they are gathered and copied there. Sums are made in order of rank either
way: not one bit of the output depends on where a row was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.kv.attention import attend
from hillinfer.kv.device_copies import send
from hillinfer.kv.geometry import Geometry

ELEMENTS = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}
"""Types of rows that native code reads, by its names for them."""
Index = npt.NDArray[np.int64]


class RowAttention(ABC):
    """One step of one stream. Every KV head needs at least one row before ``finish``."""

    @abstractmethod
    def add(self, rows: torch.Tensor, index: Index, ranks: Index, head: int | None = None) -> None:
        """Attend to rows[index] of rows [n, row_stride], the rows of these ranks; ``head``: by that KV head alone."""

    @abstractmethod
    def finish(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Output [H, G, 1, d] in the query's dtype, log-sum-exp float32 [H, G], both on the query's device."""


def attend_rows(geometry: Geometry, query: torch.Tensor, scaling: float, count: int) -> RowAttention:
    """The attention of a query [H, G, 1, d] to ``count`` rows."""
    if query.device.type == "cpu" and geometry.dtype in ELEMENTS:
        return _InPlace(geometry, query, scaling, count)
    return _Gathered(geometry, query, scaling, count)


class _InPlace(RowAttention):
    def __init__(self, geometry: Geometry, query: torch.Tensor, scaling: float, count: int) -> None:
        self._dtype = query.dtype
        element = ELEMENTS[geometry.dtype]
        flat = query[:, :, 0].float().contiguous().numpy()
        self._native = _native.Attention(flat, scaling, element, geometry.row_bytes, count)
        self._rows: list[torch.Tensor] = []  # what has to stay alive

    def add(self, rows: torch.Tensor, index: Index, ranks: Index, head: int | None = None) -> None:
        self._rows.append(rows)
        self._native.add(rows.view(torch.uint8).numpy(), index, ranks, -1 if head is None else head)

    def finish(self) -> tuple[torch.Tensor, torch.Tensor]:
        out, lse = self._native.finish()
        return torch.from_numpy(out)[:, :, None].to(self._dtype), torch.from_numpy(lse)


class _Gathered(RowAttention):
    """Rows are brought to the query's device as they are added; one that several heads add, once."""

    def __init__(self, geometry: Geometry, query: torch.Tensor, scaling: float, count: int) -> None:
        self._geometry, self._query, self._scaling = geometry, query, scaling
        self._rows = query.new_empty(count, geometry.row_stride, dtype=geometry.dtype)
        self._here = torch.zeros(count, dtype=torch.bool)
        self._seen = torch.zeros(geometry.kv_heads, count, dtype=torch.bool)

    def add(self, rows: torch.Tensor, index: Index, ranks: Index, head: int | None = None) -> None:
        places = torch.from_numpy(ranks)
        self._seen[slice(None) if head is None else head, places] = True
        new = ~self._here[places]
        places, wanted = places[new], torch.from_numpy(index)[new]
        self._here[places] = True
        if not len(places):
            return
        if rows.device == self._rows.device and rows.device.type != "cpu":
            wanted, places = send(rows.device, wanted, None, places)
            taken = rows.index_select(0, wanted)
        else:
            taken, places = send(self._rows.device, rows, wanted, places)
        self._rows.index_copy_(0, places, taken)

    def finish(self) -> tuple[torch.Tensor, torch.Tensor]:
        mask = None if bool(self._seen.all()) else send(self._query.device, self._seen, None)[0]
        out, lse = attend(self._query, *self._geometry.unpack_rows(self._rows), self._scaling, mask=mask)
        return out, lse[:, :, 0].float()
