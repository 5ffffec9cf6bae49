"""Any 32-bit scalars: the kernel ends, and an illegal launch writes one slot that says why, and reads nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hillinfer.csd.abi import Launch, aligned
from hillinfer.errors import DeviceError
from tb import qk_model

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
FEW = 40  # legal launches stay small enough for the buffers below


def _status(tokens: int, shape: int, format: int) -> int:
    """The status that docs/kernel.md asks for, rule by rule."""
    keys = format & 3
    beats, pair, dual, banks, groups = shape & 15, shape >> 4 & 1, shape >> 5 & 1, shape >> 8 & 7, shape >> 16 & 511
    rules = [
        1 <= beats <= 8,
        1 <= groups <= 256,
        beats * groups * (1 + dual) <= 256,
        1 <= banks <= 4,
        banks <= 3 or keys == 3,
        2**banks * 32 >= {0: 32, 1: 32, 2: 64, 3: 128}[keys],  # at least one query
        keys >= 2 or not (pair or dual),
        beats == 1 or not pair,
        shape & ~0x01FF073F == 0,
    ]
    status = 0 if 0 <= tokens <= 1 << 20 else qk_model.STATUS_TOKENS
    status |= 0 if all(rules) else qk_model.STATUS_SHAPE
    return status | (0 if format & ~0x13 == 0 else qk_model.STATUS_FORMAT)


@st.composite
def shapes(draw):
    """Words whose fields are often legal, so that both sides of every limit are met."""
    beats = draw(st.sampled_from([0, 1, 1, 2, 8, 9, 15]))
    banks = draw(st.integers(0, 5))
    groups = draw(st.sampled_from([0, 1, 2, 31, 32, 33, 128, 255, 256, 257, 511]))
    stray = draw(st.sampled_from([0, 0, 0, 0, 1 << 6, 1 << 7, 1 << 11, 1 << 15, 1 << 25, -(1 << 31)]))
    return beats | draw(st.integers(0, 3)) << 4 | banks << 8 | groups << 16 | stray


@settings(max_examples=1500, deadline=None)
@given(
    tokens=st.integers(0, FEW) | st.integers((1 << 20) + 1, (1 << 31) - 1) | st.integers(-(1 << 31), -1),
    first=INT32,
    shape=shapes() | INT32,
    format=st.sampled_from([0, 1, 2, 3, 16, 17, 18, 19]) | st.sampled_from([4, 8, 32, -1, 1 << 30]) | INT32,
    min_score=INT32,
    tag=INT32,
)
@example(tokens=(1 << 20) + 1, first=0, shape=0x10101, format=0, min_score=0, tag=0)
@example(tokens=-1, first=0, shape=-1, format=-1, min_score=0, tag=-1)
@example(tokens=1, first=-1, shape=0x10111, format=2, min_score=0, tag=0)
@example(tokens=1, first=-1, shape=0x10113, format=2, min_score=0, tag=0)
@example(tokens=1, first=-1, shape=0x10101, format=3, min_score=0, tag=0)
def test_any_scalars(library, tokens, first, shape, format, min_score, tag):
    scalars = (tokens, first, shape, format, min_score, tag)
    status = _status(tokens, shape, format)
    if status:
        with pytest.raises(DeviceError):
            Launch(*scalars)
    else:
        launch = Launch(*scalars)
        assert max(launch.query_beats / QUERY, launch.key_beats / KEYS, launch.exponent_beats / EXPONENTS) <= 1
    slots = aligned(65 + 2)
    slots[:] = 0xEE
    start = slots.ctypes.data + 64
    # Null inputs: an illegal launch that read anything would end this process.
    inputs = (0, 0, 0) if status or not tokens else _zeros()
    library.run(*inputs, start, scalars)
    written = slots.tobytes()
    assert written[:64] == written[-64:] == b"\xee" * 64
    (block,) = qk_model.parse_blocks(written[64:-64])
    assert (block.status, block.scanned) == (status, 0 if status else tokens)
    assert (block.tag, block.first_token) == (tag & 0xFFFFFFFF, first & 0xFFFFFFFF)
    if status or not tokens:
        nothing = np.empty(0, np.int16)
        assert written[64:-64] == qk_model.score_blocks(nothing, first, tag, min_score, status)


QUERY, KEYS, EXPONENTS = 256 + 256 * 8, 256 * FEW, 4
_ZEROS: list[np.ndarray] = []


def _zeros():
    """Inputs as large as any small legal launch reads."""
    if not _ZEROS:
        _ZEROS.extend(aligned(beats) for beats in (QUERY, KEYS, EXPONENTS))
    return tuple(beats.ctypes.data for beats in _ZEROS)
