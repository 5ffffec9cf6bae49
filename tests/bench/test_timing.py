"""Turns: everybody has as many, nobody is always first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.bench.timing import Contender, in_turns, p95_ms


class Noted(Contender):
    def __init__(self, label: str, seen: list[str]) -> None:
        self.label, self._seen = label, seen

    def prepare(self) -> None:
        self._seen.append(f"{self.label} begins")

    def step(self) -> None:
        self._seen.append(self.label)


def test_in_turns() -> None:
    seen: list[str] = []
    times = in_turns([Noted(label, seen) for label in "ab"], rounds=2, block=2, warm=1)
    assert [len(each) for each in times] == [4, 4]
    assert "".join(each[0] for each in seen if each.endswith("begins")) == "abba"
    assert seen[:5] == ["a begins", "a", "a", "a", "b begins"]


@given(st.lists(st.floats(0, 10), min_size=1))
def test_p95_is_a_time_that_19_of_20_do_not_exceed(seconds: list[float]) -> None:
    bound = p95_ms(seconds)
    assert any(bound == pytest.approx(1e3 * each) for each in seconds)
    assert sum(1e3 * each <= bound for each in seconds) >= 0.95 * len(seconds)
