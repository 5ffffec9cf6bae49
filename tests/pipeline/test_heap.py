"""When freed memory goes back to the system: garbage does, what every layer takes again does not."""

from __future__ import annotations

import pytest

from hillinfer.pipeline.heap import Heap

MIB = 1 << 20


class Process(Heap):
    """A process whose resident memory is given: ``used``, and ``freed`` until it is trimmed."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.freed, self.trims = 100 * MIB, 0, 0
        self._trim = self._give_back

    def _give_back(self, _: int) -> None:
        self.freed = 0
        self.trims += 1

    def _resident(self) -> int:  # type: ignore[override]
        return self.used + self.freed


@pytest.mark.parametrize("layer", [4, 30, 100])
def test_what_every_layer_takes_again_is_given_back_once_at_most(layer):
    process = Process()
    process.tidy(0)
    for _ in range(60):
        process.freed = layer * MIB
        process.tidy(0)
    assert process.trims <= 1


def test_garbage_that_grows_is_given_back():
    process, most = Process(), 0
    for _ in range(60):
        process.freed = max(process.freed, 30 * MIB) + 5 * MIB
        process.tidy(0)
        most = max(most, process.freed)
    assert process.trims > 5
    assert most < 80 * MIB


def test_what_the_tiers_hold_is_no_garbage():
    process = Process()
    for held in range(0, 1000, 50):
        process.used = (100 + held) * MIB
        process.tidy(held * MIB)
    assert process.trims == 0
