"""Rows of one head: they grow, and rows in place are replaced, whatever the format and the memory."""

from __future__ import annotations

import pytest
import torch

from hillinfer.kv.row_format import row_format
from hillinfer.store.head_rows import HeadRows


@pytest.mark.parametrize("name", ["exact", "int8", "int4"])
@pytest.mark.parametrize("room", [400, 0])
def test_what_is_read_is_what_was_put_there(name, room):
    form = row_format(name, 16, torch.float32)
    rows = torch.randn(400, 2, 16, generator=torch.Generator().manual_seed(0))
    kept = HeadRows(form, room, torch.device("cpu"))
    expected = form.decode(form.encode(rows[:0]))
    for first, stop in [(0, 0), (0, 150), (150, 151), (151, 152), (152, 300), (300, 400)]:
        kept.append(rows[first:stop])
        expected = form.decode(form.encode(rows[:stop]))
        keys, values = kept.read()
        assert torch.equal(keys, expected[:, 0])
        assert torch.equal(values, expected[:, 1])
        assert len(kept) == stop
        spare = kept.nbytes - stop * form.row_bytes
        assert 0 <= spare <= (0 if room else 64 * form.row_bytes)
    kept.replace(rows[200:350])
    expected[:150] = form.decode(form.encode(rows[200:350]))
    assert torch.equal(kept.read()[0], expected[:, 0])
    assert torch.equal(kept.read(10, 20)[1], expected[10:20, 1])
    assert (kept.plain is not None) == (name == "exact")
