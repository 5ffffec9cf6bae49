"""What XRT shows of a card that fails: HW_EMU_FAULT is read when the card is opened."""

from __future__ import annotations

import pytest

from scripts.hw_emu.faults import VARIABLE
from tests.emulated.card import FROM, STATE, Card
from tests.hw_emu.cards import example


@pytest.fixture
def opened(monkeypatch):
    def open_card(fault: str) -> Card:
        monkeypatch.setenv(VARIABLE, fault)
        return Card()

    return open_card


def test_a_launch_that_hangs_times_out_and_memory_still_answers(opened):
    card, launch = opened("hang_after=1"), example()
    assert card.blocks(launch) == launch.blocks.tobytes()
    run, buffers, view = card.prepare(launch)
    run.start()
    assert run.wait(100) == STATE.ERT_CMD_STATE_TIMEOUT
    buffers[-1].sync(FROM, launch.blocks.size, 0)
    assert not view.any()


def test_a_card_that_dies_is_silent_and_holds_nobody_up(opened):
    card, launch = opened("die_after=1"), example()
    assert card.blocks(launch) == launch.blocks.tobytes()
    run, buffers, view = card.prepare(launch)
    for _ in range(3):
        run.start()
        assert run.wait(10_000) == STATE.ERT_CMD_STATE_COMPLETED
        buffers[-1].sync(FROM, launch.blocks.size, 0)
        assert not view.any()


def test_launches_that_are_skipped_write_nothing(opened):
    card, launch = opened("skip_after=0"), example()
    assert not any(card.blocks(launch))


def test_a_slow_launch_takes_its_time_and_the_card_works_again(opened):
    card, launch = opened("slow=2000"), example()
    run, buffers, view = card.prepare(launch)
    run.start()
    assert run.wait(50) == STATE.ERT_CMD_STATE_TIMEOUT
    assert run.wait(10_000) == STATE.ERT_CMD_STATE_COMPLETED
    buffers[-1].sync(FROM, launch.blocks.size, 0)
    assert view.tobytes() == launch.blocks.tobytes()
