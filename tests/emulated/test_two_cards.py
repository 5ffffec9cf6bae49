"""Two emulated cards in one process, and one that is opened again."""

from __future__ import annotations

from tests.emulated.card import FROM, STATE, Card
from tests.hw_emu.cards import example


def test_two_cards_have_a_memory_each_and_one_may_go(capfd):
    launches = [example(300, tag, seed=tag) for tag in (1, 2)]
    cards = [Card(0), Card(1)]
    prepared = [card.prepare(launch) for card, launch in zip(cards, launches, strict=True)]
    assert prepared[0][1][0].address() == prepared[1][1][0].address()
    for run, _, _ in prepared:
        run.start()
    for launch, (run, buffers, view) in zip(launches, prepared, strict=True):
        assert run.wait(10_000) == STATE.ERT_CMD_STATE_COMPLETED
        buffers[-1].sync(FROM, launch.blocks.size, 0)
        assert view.tobytes() == launch.blocks.tobytes()
    del run, buffers, view, prepared
    del cards[0]
    assert cards[0].blocks(launches[0]) == launches[0].blocks.tobytes()
    again = Card(0)
    for card in (again, cards[0]):
        assert card.blocks(launches[1]) == launches[1].blocks.tobytes()
    assert capfd.readouterr().out == ""  # a program's output is its own
