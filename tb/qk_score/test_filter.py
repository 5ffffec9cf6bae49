"""min_score: what is kept, what is left out, and where the threshold itself lies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from tb import qk_model
from tb.qk_layout import Format
from tb.qk_score.bench import TB
from tb.qk_score.cases import Launch, Stimulus


@cocotb.test()
@cocotb.parametrize(fmt=list(Format), keep=[0.0, 0.05, 0.5, 0.97])
async def shares(dut: Any, fmt: Format, keep: float) -> None:
    """None, few, half and most of the tokens are kept, in whole blocks and parts of them."""
    tb = TB(dut)
    await tb.cycle_reset()
    for n in (1, 60, 1024, 1500):
        tb.set_stalls(0.2 * (n % 8 == 4), seed=n)
        await tb.run(Stimulus(fmt, 1, 2, fmt.lanes, n, keep=keep, seed=n).launch(), offset=64)


@cocotb.test()
async def thresholds(dut: Any) -> None:
    """The ends of int16 and beyond: min_score is compared as a 32-bit number."""
    tb = TB(dut)
    await tb.cycle_reset()
    launch = Stimulus(Format.INT8, 1, 1, 64, 200, "sum", "corners", seed=3).launch()
    scores = np.concatenate([block.scores for block in qk_model.parse_blocks(launch.expected)])
    thresholds = [-(1 << 31), -32769, -32768, -32767, 0, int(np.median(scores)), 32767, 32768, (1 << 31) - 1]
    for min_score in thresholds:
        await tb.run(_with_min_score(launch, scores, min_score))


@cocotb.test()
async def ties(dut: Any) -> None:
    """Tokens that score exactly min_score stay."""
    tb = TB(dut)
    await tb.cycle_reset()
    launch = Stimulus(Format.INT4, 1, 1, 32, 300, "max", "exact", seed=4).launch()
    scores = np.concatenate([block.scores for block in qk_model.parse_blocks(launch.expected)])
    values, counts = np.unique(scores, return_counts=True)
    common = int(values[counts.argmax()])
    for min_score in (common - 1, common, common + 1):
        await tb.run(_with_min_score(launch, scores, min_score))


def _with_min_score(launch: Launch, scores: qk_model.Int16s, min_score: int) -> Launch:
    expected = qk_model.score_blocks(scores, launch.first_token, launch.tag, min_score)
    return replace(launch, name=f"{launch.name} min_score={min_score}", min_score=min_score, expected=expected)
