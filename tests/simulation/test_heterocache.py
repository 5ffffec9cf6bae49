"""HeteroCache's step in closed form."""

from __future__ import annotations

import pytest

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import load
from hillinfer.simulation.methods.heterocache import HeteroCache
from hillinfer.simulation.recorded_run import stock_trace
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import named

SHAPE = named("llama-3.1-8b")
TOKENS = 131072


def _step(method: HeteroCache) -> float:
    return simulate(load("a100-80g"), SHAPE, method, stock_trace("m", SHAPE.layers, TOKENS, 4)).median_step


def test_a_quiet_step_reads_weights_and_what_is_on_the_gpu() -> None:
    nbytes = SHAPE.weights + 0.5 * TOKENS * SHAPE.token_bytes
    assert _step(HeteroCache(0.5, 0.75)) == pytest.approx(nbytes / 2039e9, rel=0.01)


def test_refills_hide_behind_a_step_until_the_link_is_full() -> None:
    quiet = _step(HeteroCache(0.5, 0.75))
    assert _step(HeteroCache(0.5, 0.75, 0.03)) == pytest.approx(quiet, rel=0.01)
    crossing = 0.5 * 0.75 * 0.5 * TOKENS * SHAPE.token_bytes  # half of what satellites have on the GPU
    assert _step(HeteroCache(0.5, 0.75, 0.5)) == pytest.approx(crossing / 31.5e9, rel=0.3)
    assert _step(HeteroCache(0.5, 0.75, 0.5)) > 2 * quiet


def test_shares_are_shares() -> None:
    with pytest.raises(SettingError, match="shares"):
        HeteroCache(1.5)
