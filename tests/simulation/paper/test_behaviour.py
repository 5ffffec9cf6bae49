"""Who comes, goes and stays: against loops over sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.errors import SettingError
from hillinfer.simulation.paper.behaviour import noted, of_positions, read
from hillinfer.simulation.trace import LayerStep, Positions, Trace

Sets = list[list[npt.NDArray[np.int64]]]


def _sets(seed: int, steps: int, layers: int, tokens: int) -> Sets:
    rng = np.random.default_rng(seed)
    return [
        [np.sort(rng.choice(tokens + step, int(rng.integers(1, tokens)), replace=False)) for _ in range(layers)]
        for step in range(steps)
    ]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3), st.integers(4, 30))
def test_counts_are_those_of_sets(seed: int, steps: int, layers: int, tokens: int) -> None:
    selected = _sets(seed, steps, layers, tokens)
    found = of_positions(selected, tokens)
    for layer in range(layers):
        for step in range(1, steps):
            before, now = set(selected[step - 1][layer]), set(selected[step][layer])
            assert found.entered[step - 1, layer] == len(now - before)
            assert found.attended[step - 1, layer] == len(now)
        times = [sum(token in set(selected[step][layer]) for step in range(steps)) for token in range(tokens)]
        assert found.steps_of[layer].tolist() == [times.count(count) for count in range(steps + 1)]
    assert sum(found.lifetimes) == pytest.approx(1)


def test_by_hand() -> None:
    selected = [[np.array([0, 1])], [np.array([1, 2])], [np.array([1, 3])], [np.array([1, 4])]]
    found = of_positions(selected, 8)
    assert found.moved_by_score == 0.5  # one of two is new at each step
    assert found.lifetimes == (1 / 8, 4 / 8, 3 / 8)  # 1 in all four steps; 0, 2, 3 and 4 in one; 5, 6 and 7 never


def test_what_is_noted_is_read_back_and_its_absence_is_said() -> None:
    selected = _sets(1, 4, 2, 12)
    works = [[LayerStep(12 + step, attended=3)] * 2 for step in range(4)]
    trace = Trace("m", "hillinfer", works, positions=Positions(selected, [], [], []))
    found = read(Trace("m", "hillinfer", works, settings=noted(trace)))
    assert np.array_equal(found.steps_of, of_positions(selected, 12).steps_of)
    with pytest.raises(SettingError, match="--record"):
        read(Trace("m", "hillinfer", works))
