"""Rows kept per KV head: against lists of positions, and that dropping them gives memory back."""

from __future__ import annotations

from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.kv.geometry import Geometry
from hillinfer.store.kept_rows import FREE, KeptRows

DIM = 4


def _rows(geometry, first, count):
    """Keys and values that tell their head and position."""
    positions = torch.arange(first, first + count, dtype=geometry.dtype)
    keys = (positions[None] + 1000 * torch.arange(geometry.kv_heads)[:, None])[..., None].expand(-1, -1, DIM)
    return keys, -keys


def _check(rows, expected):
    held = rows.held
    assert held.counts == [len(each) for each in expected]
    assert held.rows == sum(held.counts)
    wanted = held.rows * 2 * DIM * 4
    assert rows.nbytes == wanted if rows.paged else rows.nbytes >= wanted
    for head, positions in enumerate(expected):
        count = len(positions)
        assert sorted(held.positions[head, :count].tolist()) == positions
        assert (held.positions[head, count:] == FREE).all()
        told = held.positions[head, :count].float()
        assert torch.equal(held.keys[head, :count, 0], told + 1000 * head)
        assert torch.equal(held.values[head, :count, 0], -told - 1000 * head)
        assert torch.equal(held.weights[head, :count], told)
        assert torch.equal(rows.head(head)[0][:, 0], told + 1000 * head)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.booleans(), st.data())
def test_any_order_of_adding_and_dropping(heads, paged, data):
    geometry = Geometry(1, heads, 1, DIM, torch.float32)
    rows, expected = KeptRows(geometry, 1 << 12, torch.device("cpu"), paged=paged), [[] for _ in range(heads)]
    for _ in range(data.draw(st.integers(1, 8))):
        count = data.draw(st.integers(1, 5))
        first = rows.tokens
        rows.append(*_rows(geometry, first, count))
        held = rows.held
        for head, positions in enumerate(expected):
            held.weights[head, len(positions) : len(positions) + count] += torch.arange(first, first + count)
            positions.extend(range(first, first + count))
        _check(rows, expected)
        if data.draw(st.booleans()):
            slots = [data.draw(st.permutations(range(n)).map(lambda p: p[: len(p) // 2 + 1])) for n in held.counts]
            kept = [sorted(held.positions[head, index].tolist()) for head, index in enumerate(slots)]
            rows.keep([torch.tensor(index) for index in slots])
            expected = kept
            assert rows.in_order
        elif rows.even and data.draw(st.booleans()):
            slots = torch.tensor([data.draw(st.integers(0, rows.counts[0] - 1)) for _ in range(heads)])
            for head, slot in enumerate(slots.tolist()):
                expected[head].remove(int(held.positions[head, slot]))
            rows.drop_one(slots)
        elif data.draw(st.booleans()):
            rows.order()
            for head, positions in enumerate(expected):
                assert rows.held.positions[head, : len(positions)].tolist() == positions
        _check(rows, expected)


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_what_is_dropped_frees_its_memory():
    geometry = Geometry(1, 8, 1, 128, torch.float32)
    rows = KeptRows(geometry, 1 << 20, torch.device("cpu"))
    before = _resident()
    block = torch.ones(8, 1024, 128)
    for _ in range(8):
        rows.append(block, block)
    whole = _resident() - before
    assert 0.9 * rows.nbytes < whole < 1.1 * rows.nbytes  # 64 MiB of rows, and what is reserved beyond is not taken
    rows.keep([torch.arange(512) for _ in range(8)])
    assert rows.nbytes == 4 << 20
    assert _resident() - before < 0.2 * whole


def test_memory_that_is_not_taken_by_pages_grows_by_little():
    """As on an accelerator: what is allocated, after a prompt and after many steps that drop a row and add one."""
    geometry = Geometry(1, 2, 1, DIM, torch.float32)
    rows, one = KeptRows(geometry, 1 << 20, torch.device("cpu"), paged=False), 2 * 2 * DIM * 4
    rows.append(*_rows(geometry, 0, 1000))
    assert rows.nbytes <= 1020 * one
    rows.keep([torch.arange(100), torch.arange(100)])
    for _ in range(50):
        rows.append(*_rows(geometry, rows.tokens, 1))
        rows.drop_one(torch.tensor([3, 4]))
    assert rows.nbytes == 101 * one
