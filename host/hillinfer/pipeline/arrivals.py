"""What the host needs of a step that is computed elsewhere: queries to score with, rows whose keys are to be cast."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hillinfer.kv.device_copies import Arriving
from hillinfer.kv.geometry import Geometry


@dataclass
class Arrived:
    """One sequence's share of its batch's copies.

    own   the new token's row [1, row_stride], on its device
    """

    own: torch.Tensor
    _geometry: Geometry
    _queries: Arriving
    _rows: Arriving
    _sequence: int

    @property
    def row(self) -> torch.Tensor:
        """``own`` in DRAM; waits for it."""
        return self._rows.wait()[self._sequence : self._sequence + 1]

    @property
    def query(self) -> torch.Tensor:
        """The query float32 [H, G, d] in DRAM; waits for it."""
        return self._geometry.group_heads(self._queries.wait()[self._sequence])


def arrivals(geometry: Geometry, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> list[Arrived]:
    """One layer's new tokens, of a whole batch, on their way to DRAM.

    All of them are under way before any is attended to: the host waits once for a batch, and never for attention.

    query [B, H·G, 1, d], keys and values [B, H, 1, d]
    """
    rows = geometry.pack_rows(keys[:, :, 0].transpose(0, 1), values[:, :, 0].transpose(0, 1))
    coming = Arriving(query[:, :, 0].float()), Arriving(rows)
    return [Arrived(rows[index : index + 1], geometry, *coming, index) for index in range(len(query))]
