"""Runs the xrt board's tests on emulated cards, each in a session of its own that ends at a deadline."""

from __future__ import annotations

import pytest

from scripts.hw_emu.xclbin import Card
from tests.hw_emu.emulation import needs_xrt, pytest_inside

pytestmark = needs_xrt


@pytest.mark.parametrize(
    ("tests", "settings"),
    [
        ("test_xrt_board.py", {"card": Card(memory_bytes=64 << 20)}),
        ("test_xrt_tokens.py", {"cards": 2}),
        ("test_xrt_lost.py::test_a_launch_that_never_ends", {}),
        ("test_xrt_lost.py::test_a_card_that_stops_answering", {}),
        ("test_xrt_lost.py::test_a_card_that_is_killed_in_the_midst_of_a_launch", {}),
    ],
)
def test_on_emulated_cards(tests, settings):
    assert pytest_inside(f"tests/emulated/{tests}", **settings) == 0
