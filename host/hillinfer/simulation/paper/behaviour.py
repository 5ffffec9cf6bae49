"""What a recorded selection says about placement, without a clock: who comes and goes, and who stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.simulation.trace import Trace

_LONG = 0.5  # of the steps: a token that half of them and more attend to lives long
_KEY = "behaviour"


@dataclass(frozen=True)
class Behaviour:
    """Counts of one run.

    entered    int64 [steps − 1, layers]: tokens that a step attends to and the step before did not
    attended   int64 [steps − 1, layers]: tokens that it attends to
    steps_of   int64 [layers, steps + 1]: of the tokens cached when the run began, those attended in 0, 1, … steps
    """

    entered: npt.NDArray[np.int64]
    attended: npt.NDArray[np.int64]
    steps_of: npt.NDArray[np.int64]

    @property
    def moved_by_score(self) -> float:
        """The share of the pool that changes per step where the pool is what the step attends to.

        That is placement by each step's scores: what has the highest now is in DRAM, all else on the drive. One way
        is counted; as much goes back.
        """
        return float((self.entered / self.attended).mean())

    @property
    def lifetimes(self) -> tuple[float, float, float]:
        """Shares of the tokens that are attended in at least half of the steps, in fewer, and in none."""
        tokens, steps = self.steps_of.sum(), self.steps_of.shape[1] - 1
        long = self.steps_of[:, int(np.ceil(_LONG * steps)) :].sum() / tokens
        never = self.steps_of[:, 0].sum() / tokens
        return float(long), float(1 - long - never), float(never)


def of_positions(selected: Sequence[Sequence[npt.NDArray[np.int64]]], tokens: int) -> Behaviour:
    """Behaviour of selections [steps][layers], ascending positions each; ``tokens`` were cached before the first."""
    layers, steps = len(selected[0]), len(selected)
    entered = np.zeros((steps - 1, layers), np.int64)
    attended = np.zeros((steps - 1, layers), np.int64)
    steps_of = np.zeros((layers, steps + 1), np.int64)
    for layer in range(layers):
        times = np.zeros(tokens, np.int64)
        for step in range(steps):
            chosen = selected[step][layer]
            times[chosen[chosen < tokens]] += 1
            if step:
                entered[step - 1, layer] = len(np.setdiff1d(chosen, selected[step - 1][layer], assume_unique=True))
                attended[step - 1, layer] = len(chosen)
        steps_of[layer] = np.bincount(times, minlength=steps + 1)
    return Behaviour(entered, attended, steps_of)


def noted(trace: Trace) -> dict[str, Any]:
    """The behaviour of a trace with positions, as a setting that its file keeps when positions are left out."""
    assert trace.positions is not None
    found = of_positions(trace.positions.selected, trace.tokens)
    return {_KEY: {name: values.tolist() for name, values in vars(found).items()}}


def read(trace: Trace) -> Behaviour:
    """What ``noted`` wrote; SettingError for a trace without it."""
    written = trace.settings.get(_KEY)
    if written is None:
        raise SettingError("the recorded run says nothing of who came and went: run hillinfer simulate paper --record")
    return Behaviour(**{name: np.array(values, np.int64) for name, values in written.items()})
