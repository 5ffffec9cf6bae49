"""Runs tests/emulated in the environment, where XRT finds two emulated cards: some files in a process of their own."""

from __future__ import annotations

import pytest

from tests.hw_emu.emulation import needs_xrt, pytest_inside

pytestmark = needs_xrt


@pytest.mark.parametrize(
    "files", [["test_pyxrt.py"], ["test_balance.py", "test_two_cards.py"], ["test_card_faults.py"]], ids="+".join
)
def test_on_emulated_cards(files):
    assert pytest_inside(*(f"tests/emulated/{file}" for file in files), cards=2) == 0
