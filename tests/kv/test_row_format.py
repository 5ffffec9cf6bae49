"""Rows as they are, and rounded: how far off, how many bytes, and no row depends on another."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.errors import SettingError
from hillinfer.kv.row_format import row_format

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _rows(count, dim, dtype, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, 2, dim, generator=generator) * scale + torch.randn(dim, generator=generator)).to(dtype)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["exact", "int8", "int4"]),
    st.integers(0, 9),
    st.sampled_from([2, 16, 64, 80, 128]),
    st.sampled_from(DTYPES),
    st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_rounding_is_within_half_a_step_of_every_run(name, count, dim, dtype, scale):
    form = row_format(name, dim, dtype)
    rows = _rows(count, dim, dtype, count, scale)
    columns = form.encode(rows)
    assert [(column.shape, column.dtype) for column in columns] == [((count, c), kind) for c, kind in form.columns]
    assert form.row_bytes * count == sum(column.nbytes for column in columns)
    again = form.decode(columns)
    assert (again.shape, again.dtype) == (rows.shape, dtype)
    if name == "exact":
        assert torch.equal(again, rows)
        return
    run = 32 if dim % 32 == 0 else dim
    runs = rows.float().reshape(count, 2 * dim // run, run)
    step = (runs.amax(-1, keepdim=True) - runs.amin(-1, keepdim=True)) / (2 ** int(name[3:]) - 1)
    offset = runs.amin(-1, keepdim=True).abs() * 2**-10  # the offset is a float16, and so may the result be
    error = (again.float().reshape(runs.shape) - runs).abs()
    rounding = runs.abs() * torch.finfo(dtype).eps
    assert (error <= 0.51 * step * 1.01 + offset + rounding + 1e-4 * scale).all()


@pytest.mark.parametrize("name", ["exact", "int8", "int4"])
def test_no_row_depends_on_another(name):
    form, rows = row_format(name, 64, torch.float32), _rows(6, 64, torch.float32, 1)
    whole = form.decode(form.encode(rows))
    for index in range(6):
        assert torch.equal(form.decode(form.encode(rows[index : index + 1]))[0], whole[index])


def test_formats_that_are_none():
    with pytest.raises(SettingError, match="exact, int8, int4"):
        row_format("int2", 64, torch.float32)
    with pytest.raises(SettingError, match="even"):
        row_format("int4", 5, torch.float32)
