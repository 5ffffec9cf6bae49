"""A launch with random operands, and what the kernel's C simulation makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer.csd import native
from hillinfer.csd.abi import Launch, aligned
from hillinfer.csd.abi.launch import shape_word
from hillinfer.csd.abi.numbers import INT8, NO_SCORE

Beats = npt.NDArray[np.uint8]


@dataclass
class Example:
    """INT8 keys of one head; ``operands``: query, keys, exps; ``blocks``: the slots it writes."""

    launch: Launch
    operands: tuple[Beats, Beats, Beats]
    blocks: Beats


def example(tokens: int = 100, tag: int = 7, seed: int = 0) -> Example:
    launch = Launch(tokens, 0, shape_word(1, False, False, 3, 1), INT8, NO_SCORE, tag)
    generator = np.random.default_rng(seed)
    operands = []
    for beats in (launch.query_beats, launch.key_beats, launch.exponent_beats):
        operands.append(aligned(beats))
        operands[-1][:] = generator.integers(0, 256, operands[-1].shape, np.uint8)
    blocks = native.score(*operands, *launch.scalars).view(np.uint8).reshape(-1)
    return Example(launch, tuple(operands), blocks)
