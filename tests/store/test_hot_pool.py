"""The hot pool against a dictionary; the device tier against a plain list."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.kv.copies.int8 import Int8Copy
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import cast_keys
from hillinfer.store.device_tier import DeviceTier
from hillinfer.store.hot_pool import HotPool

GEOMETRY = Geometry(layers=1, kv_heads=2, group=1, head_dim=8, dtype=torch.float32)
TOKENS = 400


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, TOKENS - 1), max_size=60)), max_size=30))
def test_the_pool_is_a_dictionary_of_rows(operations):
    pool = HotPool(GEOMETRY, TOKENS)
    pool.extend(TOKENS)
    rows = torch.arange(TOKENS, dtype=torch.float32)[:, None].expand(-1, GEOMETRY.row_stride).contiguous()
    held: set[int] = set()
    for inserting, tokens in operations:
        coming, leaving = sorted(tokens - held), sorted(tokens & held)
        pairs = min(len(coming), len(leaving))
        if inserting and pairs:  # some of them trade places
            ranks = np.arange(pairs)
            demote, promote = np.array(leaving[:pairs]), np.array(coming[:pairs])
            pool.exchange(demote, promote, rows[torch.from_numpy(promote)], ranks)
            held = held - set(demote.tolist()) | set(promote.tolist())
        chosen = np.array(sorted(tokens - held if inserting else tokens & held), np.int64)
        if inserting:
            pool.insert(chosen, rows[torch.from_numpy(chosen)])
            held |= set(chosen.tolist())
        else:
            pool.evict(chosen)
            held -= set(chosen.tolist())
        assert len(pool) == len(held)
        assert pool.nbytes == len(held) * GEOMETRY.row_bytes
        assert sorted(pool.positions().tolist()) == sorted(held)
        for token in held:
            assert pool.rows[pool.slot_of[token], 0] == token
        fill = np.bincount(np.array(sorted(held), np.int64) // TILE, minlength=len(pool.tile_fill))
        np.testing.assert_array_equal(pool.tile_fill, fill)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 99), max_size=12), max_size=40), st.integers(1, 10))
def test_guests_leave_in_order_of_last_use(steps, capacity):
    """Against a dictionary of when each was used last. Now and then a guest trades places with a resident."""
    pool = HotPool(GEOMETRY, TOKENS)
    pool.extend(TOKENS)
    rows = torch.arange(TOKENS, dtype=torch.float32)[:, None].expand(-1, GEOMETRY.row_stride).contiguous()
    pool.insert(np.array([200, 201]), rows[200:202])
    residents, used = [200, 201], {}
    for now, step in enumerate(steps):
        slots = pool.slot_of[np.array(sorted(step), np.int64)]
        present = pool.greet(slots[slots >= 0].astype(np.int64))
        assert set(present.tolist()) == step & set(used)
        used |= dict.fromkeys(present.tolist(), now)
        coming = np.array(sorted(step - set(used) - set(residents))[:capacity], np.int64)
        fresh = max(0, capacity - len(used))
        pool.insert(coming[:fresh], rows[torch.from_numpy(coming[:fresh])], guests=True)
        leaving = pool.longest_unused(len(coming[fresh:]))
        pool.replace_guests(leaving, coming[fresh:], rows, coming[fresh:])
        left = [used.pop(token, now) for token in leaving.tolist()]
        assert max(left, default=-1) <= min(used.values(), default=now)
        used |= dict.fromkeys(coming.tolist(), now)
        for token in leaving.tolist():
            used.pop(token, None)
        if used and now % 3 == 0:
            guest = next(iter(used))
            pool.trade(np.array(residents[:1]), np.array([guest]))
            used = {token: when for token, when in used.items() if token != guest} | {residents[0]: now}
            residents = [residents[1], guest]
        assert pool.guests == len(used) <= capacity
        assert sorted(pool.positions().tolist()) == sorted(residents)
        assert len(pool) == len(residents) + len(used)
        for token in [*residents, *used]:
            assert pool.rows[pool.slot_of[token], 0] == token


def _integers(tier):
    """Keys int8 [n, H, d] out of the scanning layout: [tile][16 tokens][head][4 dimensions][token][dimension]."""
    layout = tier.tiles.reshape(-1, 4, 2, 2, 16, 4).transpose(0, 1, 4, 2, 3, 5)
    return (layout.reshape(-1, 2, 8)[: len(tier)] ^ 128).view(np.int8)


def test_the_device_tier_scores_tokens_as_if_they_came_at_once():
    generator = torch.Generator().manual_seed(1)
    scale = torch.logspace(-2, 2, 150)[:, None]  # the tile's exponent has to follow
    rows = torch.randn(150, GEOMETRY.row_stride, generator=generator) * scale
    tier = DeviceTier(GEOMETRY, 3, Int8Copy(), torch.device("cpu"))
    for i in range(150):
        tier.append(rows[i : i + 1])
        whole = cast_keys(GEOMETRY.unpack_rows(rows[: i + 1])[0])
        np.testing.assert_array_equal(_integers(tier), whole.integers)
        np.testing.assert_array_equal(tier.exponents, whole.exponents)
    tier.drop(1)
    assert (tier.first, len(tier)) == (64, 86)
    torch.testing.assert_close(tier.rows, rows[64:])
    np.testing.assert_array_equal(_integers(tier), cast_keys(GEOMETRY.unpack_rows(rows[64:])[0]).integers)
