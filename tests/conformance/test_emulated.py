"""The suite on the cards' drivers, emulated: each run is a process and a session of its own, with a deadline.

A host of the emulation can hang for good, and signals its whole process group when it aborts: so not in this process.
"""

from __future__ import annotations

import pytest

from scripts.conformance.__main__ import complaints
from scripts.conformance.run import CARDS, run_driver
from tests.conformance.drivers import WITH_P2P

P2P = "test_streamed_keys.py::test_p2p_keys_go_from_the_drive_to_the_card"


@pytest.mark.parametrize("card", CARDS)
def test_an_emulated_card_conforms(card):
    outcomes = run_driver(card, kernel="native")
    assert complaints(outcomes) == []
    assert (P2P in outcomes["passed"], outcomes["not_applicable"]) == (
        (card in WITH_P2P),
        [] if card in WITH_P2P else [P2P],
    )
