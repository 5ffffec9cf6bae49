"""Scores of several launches become those of one: exact, or refused."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.csd.kernel.merge import merge
from hillinfer.errors import DeviceError

SUMS = st.lists(st.lists(st.integers(-70000, 70000), min_size=1, max_size=8), min_size=1, max_size=4)


def _clamp(value):
    return max(-32768, min(32767, value))


@given(SUMS, st.sampled_from(["max", "sum"]))
def test_exact_or_refused(parts, reduce):
    tokens = min(map(len, parts))
    parts = [part[:tokens] for part in parts]
    clamped = [np.array([_clamp(value) for value in part], np.int16) for part in parts]
    due = [_clamp(max(each) if reduce == "max" else sum(each)) for each in zip(*parts, strict=True)]
    clipped = any(abs(value) >= 32767 for part in parts for value in part)
    with contextlib.suppress(DeviceError) if reduce == "sum" and clipped else contextlib.nullcontext():
        assert merge(clamped, reduce).tolist() == due


def test_a_sum_that_is_lost_is_refused():
    with pytest.raises(DeviceError, match="take the maximum"):
        merge([np.array([32767], np.int16), np.array([-5], np.int16)], "sum")
    assert merge([np.array([32767], np.int16), np.array([5], np.int16)], "sum").tolist() == [32767]


@given(st.lists(st.lists(st.integers(-32767, 32766), min_size=3, max_size=3), min_size=2, max_size=4))
def test_sums_that_were_not_clamped_are_never_refused(parts):
    due = [_clamp(sum(each)) for each in zip(*parts, strict=True)]
    assert merge([np.array(part, np.int16) for part in parts], "sum").tolist() == due
