"""Budgets: three forms, one meaning."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies import TokenBudget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("20%", TokenBudget(ratio=0.2)),
        ("0.2", TokenBudget(ratio=0.2)),
        (0.2, TokenBudget(ratio=0.2)),
        ("100%", TokenBudget(ratio=1.0)),
        ("512", TokenBudget(tokens=512)),
        (512, TokenBudget(tokens=512)),
        ("64MiB", TokenBudget(nbytes=64 << 20)),
        ("1.5kb", TokenBudget(nbytes=1500)),
        ("900 B", TokenBudget(nbytes=900)),
    ],
)
def test_forms(text, budget):
    assert TokenBudget.parse(text) == budget
    assert TokenBudget.parse(str(budget).replace(" tokens", "").replace(" bytes", "B")) == budget


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read"),
        ("many", "a ratio .20%., a number of tokens .512. or bytes"),
        ("0%", "above 0%"),
        ("120%", "at most 100%"),
        (1.5, "at most 100%"),
        ("0", "at least 1"),
        (-3, "at least 1"),
        ("0KiB", "too small"),
        (True, "cannot read"),
    ],
)
def test_nonsense_is_told(text, message):
    with pytest.raises(SettingError, match=message):
        TokenBudget.parse(text)


@given(st.integers(1, 100), st.integers(0, 10**7))
def test_a_ratio_rounds_down_and_never_by_a_whole_token(percent, cached):
    assert TokenBudget.parse(f"{percent}%").resolve(cached) == percent * cached // 100


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 64), st.integers(1, 3), st.integers(0, 10**8))
def test_bytes_hold_as_many_tokens_as_fit(layers, kv_heads, dim, sequences, nbytes):
    geometry = Geometry(layers, kv_heads, 2, dim, torch.float16)
    one = geometry.kv_bytes(1, sequences)
    if nbytes < one:
        with pytest.raises(SettingError, match=f"one takes {one} bytes" if nbytes else "too small"):
            TokenBudget(nbytes=nbytes).fitted(geometry, sequences)
        return
    tokens = TokenBudget(nbytes=nbytes).fitted(geometry, sequences).tokens
    assert geometry.kv_bytes(tokens, sequences) <= nbytes < geometry.kv_bytes(tokens + 1, sequences)


def test_bytes_need_a_model():
    with pytest.raises(SettingError, match="fit it first"):
        TokenBudget(nbytes=1 << 20).resolve(100)
