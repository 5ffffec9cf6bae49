"""The tiles the host scores against a dictionary, and the memory they take."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.scoring import pack
from hillinfer.store.host_tiles import HostTiles
from hillinfer.store.split import Split

GEOMETRY = Geometry(layers=1, kv_heads=2, group=1, head_dim=8, dtype=torch.float32)
MOST = 12

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 6)),
        st.tuples(st.just("shrink"), st.integers(0, MOST)),
        st.tuples(st.just("back"), st.integers(0, 40)),
    ),
    max_size=20,
)


def _keys(tiles, rng):
    integers = rng.integers(-127, 128, (tiles * TILE, 2, 8), np.int8)
    return ScoringKeys(integers, rng.integers(-5, 6, (tiles, 2), np.int8))


def _warmest(tiles, fill, capacity):
    ranked = sorted(tiles, key=lambda tile: (fill[tile] > 32, tile))
    return sorted(ranked[max(0, len(ranked) - capacity) :])


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, MOST), st.integers(0, 99))
def test_host_tiles_are_the_warmest_and_keep_their_keys(operations, capacity, seed):
    rng = np.random.default_rng(seed)
    tiles, made, held, following = HostTiles(GEOMETRY, MOST), {}, [], 0
    for what, number in operations:
        fill = rng.integers(0, 65, following + 6).astype(np.int16)
        if what == "add":
            keys = _keys(number, rng)
            for i in range(number):
                made[following + i] = pack(keys.integers[i * TILE : (i + 1) * TILE])[0], keys.exponents[i]
            tiles.add(following, keys, fill, capacity)
            held = _warmest([*held, *range(following, following + number)], fill, capacity)
            following += number
        elif what == "shrink":
            tiles.shrink(fill, number)
            held = _warmest(held, fill, number)
        elif number < following and number not in held and len(held) < capacity:
            keys = _keys(1, rng)
            made[number] = pack(keys.integers)[0], keys.exponents[0]
            tiles.take_over(number, pack(keys.integers), keys.exponents)
            held = sorted([*held, number])
        if seed % 2:
            tiles.tidy()
        assert tiles.tiles == held
        assert tiles.nbytes == len(held) * TILE * GEOMETRY.score_key_bytes
        seen = [(first + i, keys[i], exponents[i]) for first, keys, exponents in tiles.runs() for i in range(len(keys))]
        assert [tile for tile, _, _ in seen] == held
        for tile, keys, exponents in seen:
            np.testing.assert_array_equal(keys, made[tile][0])
            np.testing.assert_array_equal(exponents, made[tile][1])


def test_a_long_context_touches_no_more_memory_than_it_holds():
    """The newest ten of a thousand tiles, and never a run in more than a few pieces."""
    rng = np.random.default_rng(0)
    tiles, keys = HostTiles(GEOMETRY, 100), _keys(1, rng)
    for tile in range(1000):
        tiles.add(tile, keys, np.full(tile + 1, TILE, np.int16), 10)
        assert len(tiles.runs()) <= 2
    assert tiles.tiles == list(range(990, 1000))
    assert np.count_nonzero(tiles._keys.any(1)) <= 10 + 10 // 4 + 4 + 1


def test_tiles_that_were_taken_over_are_put_in_order():
    rng = np.random.default_rng(0)
    tiles, keys = HostTiles(GEOMETRY, 100), _keys(1, rng)
    for tile in range(50, 0, -1):
        tiles.take_over(tile, pack(keys.integers), keys.exponents)
    assert len(tiles.runs()) == 50
    tiles.tidy()
    assert len(tiles.runs()) == 1
    assert tiles.changes == 51


def test_a_small_change_of_the_split_moves_no_tile():
    split = Split()
    split.lean(0.5)
    for share, kept in ((0.51, 0.5), (0.49, 0.5), (0.6, 0.6), (0.59, 0.6), (0.99, 0.99), (1.0, 1.0), (0.0, 0.0)):
        split.lean(share)
        assert split.host == kept
