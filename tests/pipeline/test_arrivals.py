"""What the host gets of a batch's step is each sequence's own."""

from __future__ import annotations

import torch

from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.arrivals import arrivals


def test_every_sequence_gets_its_query_and_its_row():
    geometry = Geometry(1, 2, 3, 8, torch.bfloat16)
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(5, 6, 1, 8, generator=generator).to(torch.bfloat16)
    keys, values = (torch.randn(5, 2, 1, 8, generator=generator).to(torch.bfloat16) for _ in range(2))
    for sequence, arrived in enumerate(arrivals(geometry, query, keys, values)):
        assert torch.equal(arrived.query, query[sequence, :, 0].float().view(2, 3, 8))
        for row in (arrived.own, arrived.row):
            assert torch.equal(row, geometry.pack_rows(keys[sequence], values[sequence]))
