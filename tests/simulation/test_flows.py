"""Flows: closed forms for one and two of them, and what holds for any."""

from __future__ import annotations

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.simulation.flows import Flows

SECONDS = st.floats(0, 100, allow_nan=False).filter(lambda value: value == 0 or value > 1e-6)
DEMANDS = st.dictionaries(st.sampled_from("abc"), SECONDS, min_size=1)


def ends(*works, least=0.0):
    """When each of the works, started together, is over."""
    env = simpy.Environment()
    flows, seen = Flows(env), {}

    def one(number, demands):
        yield flows.start(str(number), demands, least=least)
        seen[number] = env.now

    for number, demands in enumerate(works):
        env.process(one(number, demands))
    env.run()
    return [seen[number] for number in range(len(works))], flows


def test_alone_it_is_as_slow_as_its_slowest_resource() -> None:
    assert ends({"a": 2.0, "b": 3.0})[0] == [3.0]
    assert ends({"a": 2.0}, least=5.0)[0] == [5.0]
    assert ends({"a": 0.0})[0] == [0.0]


def test_two_apart_are_as_long_as_the_longer() -> None:
    assert ends({"a": 2.0}, {"b": 3.0})[0] == [2.0, 3.0]


def test_two_on_one_resource_share_it() -> None:
    """Each at half speed until the shorter is over: 1 + 1, then what is left of the other alone."""
    assert ends({"a": 1.0}, {"a": 3.0})[0] == pytest.approx([2.0, 4.0])


def test_all_are_slowed_to_the_same_share_of_their_own_speed() -> None:
    """The first takes a quarter of a at full speed, the second all: both go at 1/1.25 until the second is over."""
    assert ends({"b": 4.0, "a": 1.0}, {"a": 3.0})[0] == pytest.approx([4.75, 3.75])


def test_what_one_leaves_free_another_has() -> None:
    """Three share b, so that each goes at a third; of a the last one then has what the first leaves, two thirds."""
    over, _ = ends({"a": 1.0, "b": 1.0}, {"b": 1.0}, {"b": 1.0}, {"a": 2.0})
    assert over == pytest.approx([3.0, 3.0, 3.0, 3.0])


@given(st.lists(DEMANDS, min_size=1, max_size=5))
def test_no_resource_is_used_twice(works) -> None:
    """All are over no earlier than the most wanted resource allows, no later than one after the other; busy adds up."""
    over, flows = ends(*works)
    total = {name: sum(work.get(name, 0.0) for work in works) for name in "abc"}
    assert max(over) >= max(total.values()) * (1 - 1e-9)
    assert max(over) <= sum(max(work.values()) for work in works) * (1 + 1e-6) + 1e-9
    assert all(flows.busy.get(name, 0.0) == pytest.approx(seconds) for name, seconds in total.items())
    assert all(end >= max(work.values()) * (1 - 1e-9) for end, work in zip(over, works, strict=True))
