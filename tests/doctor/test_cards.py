"""Cards on the bus: which there are, how XRT numbers them, and what keeps one from being used."""

from __future__ import annotations

from typing import Any

import pytest

from hillinfer.doctor import State, cards, pci
from tests.doctor.box import Box


def test_a_machine_without_a_card(box: Box, look: Any) -> None:
    assert look(cards)["SmartSSD"].state is State.MISSING
    assert look(cards, "software")["SmartSSD"].state is State.UNNEEDED
    box.machine.environ["XCL_EMULATION_MODE"] = "hw_emu"  # type: ignore[index]
    found = look(cards)
    assert (found["emulation"].state, found["SmartSSD"].state) == (State.OK, State.UNNEEDED)


def test_a_card_in_order(box: Box, look: Any) -> None:
    box.card(3)
    found = look(cards)
    assert {finding.state for finding in found.values()} == {State.OK}
    assert found["SmartSSD 0000:05:00.1"].found == "xrt:0, drive nvme1n1"
    assert found["0000:05:00.1 shell"].found == "xilinx_u2_gen3x4_xdma_gc_base_2"
    assert {finding.state for finding in look(cards, "rtl").values()} == {State.UNNEEDED}


def test_xrt_counts_ready_cards_from_the_highest_address(box: Box) -> None:
    for bus in (3, 13, 23):
        box.card(bus, drive=f"nvme{bus}", ready=bus != 23)
    everything = pci.functions(box.machine)
    order = [each.address for each in pci.numbered(everything, box.machine)]
    assert order == ["0000:0f:00.1", "0000:05:00.1", "0000:19:00.1"]
    for name, address in (
        ("0", "0000:0f:00.1"),
        ("1", "0000:05:00.1"),
        ("0000:05:00.1", "0000:05:00.1"),
        ("05:00.1", "0000:05:00.1"),
        ("19:00.1", "0000:19:00.1"),
    ):
        function = pci.chosen(name, everything, box.machine)
        assert function is not None
        assert function.address == address
    for name in ("3", "-1", "ff:00.1", "first", ""):
        assert pci.chosen(name, everything, box.machine) is None


def test_each_card_has_its_own_drive(box: Box) -> None:
    box.card(3, drive="nvme1")
    box.card(13, drive="nvme0")
    box.function("0000:40:00.0", "sys/devices/pci0000:40", 0xA825, 0x0108, "nvme", vendor=0x144D)
    found = pci.cards(pci.functions(box.machine), box.machine)
    assert {card.slot: card.drives for card in found} == {"0000:05:00": ("nvme1n1",), "0000:0f:00": ("nvme0n1",)}


def test_only_the_chosen_card_must_be_in_order(box: Box, look: Any) -> None:
    box.card(3, drive="nvme0")
    box.card(13, ready=False)
    first, second = look(cards, "xrt:0"), look(cards, "xrt:1")
    assert first["0000:0f:00.1 state"].state is State.UNNEEDED
    assert second["0000:0f:00.1 state"].state is State.MISSING
    assert second["0000:05:00.1 state"].state is State.UNNEEDED
    both = look(cards, "xrt:0,xrt:1")
    assert both["0000:0f:00.1 state"].state is State.MISSING
    assert both["0000:05:00.1 state"].state is State.OK


def test_a_card_that_is_not_there(box: Box, look: Any) -> None:
    box.card(3)
    finding = look(cards, "xrt:2")["device 2"]
    assert finding.state is State.MISSING
    assert "xrt:0 = 0000:05:00.1" in finding.found


FAULTS = [
    ("ready", "0\n", "0000:05:00.1 state", State.MISSING, "power off"),
    ("dev_offline", "1\n", "0000:05:00.1 state", State.MISSING, "xbutil reset"),
    ("mig_calibration", "0\n", "0000:05:00.1 state", State.WARNING, "xbutil validate"),
    ("rom.u.3/VBNV", "xilinx_u2_gen3x4_xdma_gc_base_1\n", "0000:05:00.1 shell", State.WARNING, "xbmgmt program"),
    ("current_link_width", "1\n", "0000:05:00.1 link", State.WARNING, "bay"),
    ("current_link_speed", "2.5 GT/s PCIe\n", "0000:05:00.1 link", State.WARNING, "bay"),
]


@pytest.mark.parametrize(("file", "text", "name", "state", "says"), FAULTS)
def test_a_fault_of_the_card(box: Box, look: Any, file: str, text: str, name: str, state: State, says: str) -> None:
    user = box.card(3)
    box.write(f"{user}/{file}", text)
    found = look(cards)
    assert found[name].state is state
    assert says in found[name].fix
    assert sum(finding.state is not State.OK for finding in found.values()) == 1


def test_drivers_that_do_not_hold_the_card(box: Box, look: Any) -> None:
    user = box.card(3)
    (box.root / user / "driver").unlink()
    found = look(cards)
    assert found["0000:05:00.1 driver"].found == "none"
    assert "modprobe xocl" in found["0000:05:00.1 driver"].fix
    box.root.joinpath("sys/bus/pci/drivers/vfio-pci").mkdir()
    box.link(f"{user}/driver", box.root / "sys/bus/pci/drivers/vfio-pci")
    assert "virtual machine" in look(cards)["0000:05:00.1 driver"].means


def test_a_card_as_it_leaves_the_factory(box: Box, look: Any) -> None:
    box.function("0000:05:00.0", "sys/devices/pci0000:02", 0xE987, 0x1200, "xclmgmt")
    found = look(cards)
    assert found["0000:05:00 functions"].found == "the factory image"
    assert "xbmgmt program --base --device 0000:05:00.0" in found["0000:05:00 functions"].fix


def test_a_card_without_its_node(box: Box, look: Any) -> None:
    box.card(3)
    (box.root / "dev/dri/renderD131").unlink()
    assert look(cards)["0000:05:00.1 access"].state is State.MISSING
