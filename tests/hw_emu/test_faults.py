"""HW_EMU_FAULT."""

from __future__ import annotations

import pytest

from scripts.hw_emu.errors import EmulationError
from scripts.hw_emu.faults import Faults


def test_faults_stand_beside_each_other_and_may_be_one_cards():
    text = "die_after=3,1:slow=5,0:hang_after=0"
    assert Faults.parse(text, 0) == Faults(die_after=3, hang_after=0)
    assert Faults.parse(text, 1) == Faults(die_after=3, slow=5)
    assert Faults.parse("", 0) == Faults()


@pytest.mark.parametrize("text", ["die", "die_after", "die_after=", "die_after=-1", "x=1", "a:slow=1", "slow=1;slow=2"])
def test_what_is_none_is_refused(text):
    with pytest.raises(EmulationError, match="die_after=N"):
        Faults.parse(text)
