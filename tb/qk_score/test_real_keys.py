"""Keys and queries of a real model, quantised by the product itself (see tb/real_keys.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

import cocotb
import numpy as np

from tb.qk_layout import Format, Geometry
from tb.qk_score.bench import TB
from tb.qk_score.cases import Numbers, Reduce, lay_out
from tb.qk_score.suite import KEYS_VARIABLE


@cocotb.test()
@cocotb.parametrize(fmt=list(Format))
async def layers(dut: Any, fmt: Format) -> None:
    """Layers from the first to the last, both reduces; in one of them half the tokens are filtered."""
    tb = TB(dut)
    await tb.cycle_reset()
    arrays = np.load(Path(os.environ[KEYS_VARIABLE]))
    copy = "int8" if fmt.limit == 127 else "int4"
    for layer in sorted({name.split("/")[0] for name in arrays}, key=int):
        for reduce in get_args(Reduce):
            q8, m, r, o = (arrays[f"{layer}/{copy}/{reduce}/{name}"] for name in ("q8", "m", "r", "o"))
            keys = arrays[f"{layer}/{copy if fmt.stored else 'fp16'}/keys"]
            exponents = arrays[f"{layer}/{copy}/exponents"]
            heads, group, d = q8.shape
            numbers = Numbers(q8, m, r, o, np.ones((heads, group), bool), keys, exponents)
            launch = lay_out(
                f"layer {layer}, {fmt.name.lower()} {reduce}",
                Geometry.fit(fmt, heads, group, d),
                numbers,
                reduce,
                np.random.default_rng(int(layer)),
                kind="real",
                keep=1.0 if reduce == "max" else 0.5,
            )
            await tb.run(launch, offset=64 * int(layer))
