"""Random stress: any legal launch, any stalls, one after the other. A failure names the seed that repeats it."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb

from tb.qk_layout import Format
from tb.qk_score.bench import TB
from tb.qk_score.cases import Stimulus
from tb.qk_score.suite import FULL

SEED = int(os.environ.get("SEED", "1"))
RUNS = 12 if FULL else 3
LAUNCHES = 40
MOST_BEATS = 2500


def any_stimulus(rng: random.Random, seed: int) -> Stimulus:
    """Any launch that is legal, and over soon."""
    while True:
        fmt = rng.choice(list(Format))
        pair = fmt.stored and rng.random() < 0.3
        stimulus = Stimulus(
            fmt,
            heads=rng.choice([1, 1, 2, 3, 4, 8, rng.randint(1, 256)]),
            group=rng.randint(1, 8),
            d=rng.randint(1, fmt.lanes // 2 if pair else min(8 * fmt.lanes, 256)),
            n=rng.choice([0, 1, rng.randint(1, 130), rng.randint(1000, 1050), rng.randint(1, 2500)]),
            reduce=rng.choice(["max", "sum"]),
            kind=rng.choice(["bits", "bits", "exact", "corners"]),
            pair=pair,
            loose=rng.random() < 0.2,
            keep=rng.choice([1, 1, rng.random(), 0]),
            disabled=rng.choice([0, 0, rng.random(), 1]),
            first_token=64 * rng.randrange(1 << 25),
            tag=rng.randrange(1 << 32),
            seed=seed,
        )
        try:
            beats = stimulus.n * stimulus.geometry().row_beats
        except ValueError:
            continue  # so many heads do not fit a row
        if beats <= MOST_BEATS:
            return stimulus


@cocotb.test()
@cocotb.parametrize(run=range(RUNS))
async def stress(dut: Any, run: int) -> None:
    """Launches back to back, each with stalls of its own."""
    tb = TB(dut)
    await tb.cycle_reset()
    for index in range(LAUNCHES):
        seed = (SEED * 1000 + run) * 1000 + index
        rng = random.Random(seed)
        stimulus = any_stimulus(rng, seed)
        if rng.random() < 0.2:
            tb.set_gusts(rng.choice([3, 20, 100]), seed)
        else:
            tb.set_stalls(rng.choice([0, 0, 0.1, 0.3, 0.5, 0.8]), seed)
        try:
            await tb.run(stimulus.launch(), offset=64 * rng.randrange(64))
        except AssertionError as error:
            raise AssertionError(f"SEED={SEED}, run {run}, launch {index}: {error}") from error
