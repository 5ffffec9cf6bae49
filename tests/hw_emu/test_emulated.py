"""Runs tests/emulated in the environment, where XRT finds two emulated cards: each file in a process of its own."""

from __future__ import annotations

import pytest

from tests.hw_emu.emulation import needs_xrt, pytest_inside

pytestmark = needs_xrt


@pytest.mark.parametrize("file", ["test_pyxrt.py", "test_two_cards.py", "test_card_faults.py", "test_balance.py"])
def test_on_emulated_cards(file):
    assert pytest_inside(f"tests/emulated/{file}", cards=2) == 0
