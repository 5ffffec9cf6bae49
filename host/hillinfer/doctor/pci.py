"""SmartSSDs as /sys shows them: functions on the PCI bus, the drivers bound to them, how they hang together.

Numbers are those of XRT's own device tables (xocl/devices.h of 2.13) and of the cards people list: a card is a PCIe
switch made of 10ee bridges, and behind it an FPGA with two functions and the drive, an ordinary NVMe controller.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hillinfer.doctor.machine import Machine, number

XILINX = 0x10EE
MANAGEMENT, USER = 0x6987, 0x6988
FACTORY = (0xE987, 0xF987)
"""What a card answers with before a shell has been flashed."""
_NVME_CLASS, _BRIDGE_CLASS = 0x0108, 0x0604
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True)
class Function:
    """A function on the PCI bus: its address (``0000:05:00.1``), folder with links followed, ids and driver."""

    address: str
    folder: Path
    vendor: int
    device: int
    kind: int
    driver: str

    @property
    def slot(self) -> str:
        """The address without the function's number."""
        return self.address.rpartition(".")[0]


@dataclass(frozen=True)
class Card:
    """A SmartSSD. ``user`` runs kernels, ``management`` flashes shells and loads images; either may be absent.

    bridge  the folder of the card's own PCIe switch, under which its drive lies too; None where it shows no switch
    drives  names of the drive's namespaces, such as ``nvme1n1``
    """

    slot: str
    management: Function | None
    user: Function | None
    factory: Function | None
    bridge: Path | None
    drives: tuple[str, ...]

    @property
    def address(self) -> str:
        """The function that XRT's tools and drivers are told: the user one, if it is there."""
        shown = self.user or self.management or self.factory
        return shown.address if shown else self.slot


def functions(machine: Machine) -> list[Function]:
    """Every function on the bus, by address; those whose files cannot be read are left out."""
    found = []
    for entry in machine.entries(machine.path("sys/bus/pci/devices")):
        folder = machine.target(entry)
        if folder is None or not _ADDRESS.fullmatch(entry.name):
            continue
        vendor, device = machine.number(folder / "vendor"), machine.number(folder / "device")
        if vendor is None or device is None:
            continue
        kind = (machine.number(folder / "class") or 0) >> 8
        driver = machine.target(folder / "driver")
        found.append(Function(entry.name, folder, vendor, device, kind, driver.name if driver else ""))
    return found


def cards(everything: list[Function], machine: Machine) -> list[Card]:
    """The SmartSSDs among all functions."""
    ours = [each for each in everything if each.vendor == XILINX and each.device in (MANAGEMENT, USER, *FACTORY)]
    found = []
    for slot in dict.fromkeys(each.slot for each in ours):
        here = [each for each in ours if each.slot == slot]
        management = next((each for each in here if each.device == MANAGEMENT), None)
        user = next((each for each in here if each.device == USER), None)
        factory = next((each for each in here if each.device in FACTORY), None)
        bridge = _bridge(here[0], everything)
        found.append(Card(slot, management, user, factory, bridge, _drives(bridge, everything, machine)))
    return found


def _bridge(function: Function, everything: list[Function]) -> Path | None:
    bridges = {each.folder for each in everything if each.vendor == XILINX and each.kind == _BRIDGE_CLASS}
    above = [folder for folder in function.folder.parents if folder in bridges]
    return above[-1] if above else None


def _drives(bridge: Path | None, everything: list[Function], machine: Machine) -> tuple[str, ...]:
    if bridge is None:
        return ()
    names = []
    for each in everything:
        if each.kind == _NVME_CLASS and each.folder.is_relative_to(bridge):
            for controller in machine.entries(each.folder / "nvme"):
                names += [entry.name for entry in machine.entries(controller) if _NAMESPACE.fullmatch(entry.name)]
    return tuple(sorted(names))


def numbered(everything: list[Function], machine: Machine) -> list[Function]:
    """The functions in the order in which XRT 2.13 numbers them: ``xrt:0`` is the first.

    All cards that the driver xocl holds count, SmartSSDs or not: those that are ready from the highest address down,
    then the others from the lowest up (scan.cpp puts each ready one in front).
    """
    bound = [each for each in everything if each.driver == "xocl"]
    ready = [each for each in bound if is_ready(each, machine)]
    return ready[::-1] + [each for each in bound if each not in ready]


def is_ready(function: Function, machine: Machine) -> bool:
    """Whether XRT's driver says that the card may be used."""
    return machine.number(function.folder / "ready") == 1


def chosen(card: str, everything: list[Function], machine: Machine) -> Function | None:
    """The function that ``xrt:<card>`` names: a number, or an address with or without the domain, in small letters."""
    order = numbered(everything, machine)
    index = number(card)
    if ":" not in card:
        return order[index] if index is not None and 0 <= index < len(order) else None
    address = card if card.count(":") == 2 else f"0000:{card}"
    return next((each for each in order if each.address == address), None)


def part(function: Function, name: str, machine: Machine) -> Path | None:
    """The folder of one of the driver's parts, ``p2p`` say, below the function."""
    return next((each for each in machine.entries(function.folder) if each.name.startswith(f"{name}.")), None)
