"""Score Blocks: bytes equal to the model's, and nothing that is not whole gets through."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.csd import abi
from hillinfer.errors import DeviceError
from tb import qk_model


@given(
    st.lists(st.integers(-32768, 32767), max_size=1024),
    st.integers(0, 2**20),
    st.integers(1, 2**31 - 1),
    st.integers(-32768, 32767),
)
def test_a_block_is_the_contracts_to_the_bit_and_comes_back(scores, first, tag, min_score):
    array = np.array(scores, np.int16)
    slot = abi.pack_block(array, first, tag, 0, 1, min_score)
    assert slot.tobytes() == qk_model.score_blocks(array, first, tag, min_score)
    block = abi.unpack_block(slot, tag)
    kept = np.flatnonzero(array >= min_score) if min_score > -32768 else np.arange(len(array))
    np.testing.assert_array_equal(block.positions, kept + first)
    np.testing.assert_array_equal(block.scores, array[kept])
    assert (block.scanned, block.index, block.of) == (len(array), 0, 1)


def _whole():
    return abi.pack_block(np.arange(100, dtype=np.int16), 64, 7, 0, 1)


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (abi.TUPLE_WORDS, 0, "torn"),
        (abi.TUPLE_WORDS + 1, 8, "another launch"),
        (abi.TUPLE_WORDS + 15, 0, "torn"),
        (abi.TUPLE_WORDS + 6, 2, "illegal shape"),
        (abi.TUPLE_WORDS + 4, 101, "101 tuples of 100"),
        (3, 0, "not ascending"),
        (99, 100, "not ascending"),
    ],
)
def test_a_block_that_is_not_whole_is_an_error(word, value, message):
    slot = _whole()
    slot[word] = value
    with pytest.raises(DeviceError, match=message):
        abi.unpack_block(slot, 7)


@given(st.integers(1, 3000), st.integers(0, 2**20), st.integers(1, 2**31 - 1), st.integers(0, 2**31))
def test_the_blocks_of_a_launch_come_back_together(tokens, first, tag, seed):
    scores = np.random.default_rng(seed).integers(-32768, 32768, tokens).astype(np.int16)
    slots = np.stack(
        [
            abi.pack_block(scores[start : start + 1024], first + start, tag, start // 1024, -(-tokens // 1024))
            for start in range(0, tokens, 1024)
        ]
    )
    np.testing.assert_array_equal(abi.unpack_scores(slots, first, tokens, tag), scores)
    with pytest.raises(DeviceError, match="was due"):
        abi.unpack_scores(slots, first + 64, tokens, tag)
    with pytest.raises(DeviceError, match="of another launch"):
        abi.unpack_scores(slots, first, tokens, tag - 1)
