"""Which SmartSSDs are in the machine, which of them XRT's drivers hold, and whether they are ready."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hillinfer.doctor import pci
from hillinfer.doctor.emulation import emulating
from hillinfer.doctor.finding import Finding, State, bad, good
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

SUBJECT = "cards"
SHELL = "xilinx_u2_gen3x4_xdma_gc_base_2"
"""The shell under the platform xilinx_u2_gen3x4_xdma_gc_2_202110_1, for which images are built here."""
_LINK = ("8.0 GT/s", 4)


def examine(machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """One finding per property of each card; of absent cards one that says so."""
    needed = wanted.uses("xrt", "pynq") and not emulating(machine)
    if emulating(machine) and wanted.uses("xrt", "pynq"):
        yield Finding(SUBJECT, "emulation", State.OK, "on (XCL_EMULATION_MODE=hw_emu): no card is used")
    everything = pci.functions(machine)
    there = pci.cards(everything, machine)
    if not there:
        yield Finding(
            SUBJECT,
            "SmartSSD",
            bad(needed),
            "none on the PCI bus",
            "there is no card for the kernel to run on; --device software does the same on any machine",
            "seat the drive in a U.2 bay with airflow, switch on, and look with: lspci -d 10ee:",
        )
        return
    order = pci.numbered(everything, machine)
    used = [pci.chosen(card, everything, machine) for card in wanted.cards] if needed else []
    for name, function in zip(wanted.cards, used, strict=False):
        if function is None:
            yield Finding(
                SUBJECT,
                f"device {name}",
                State.MISSING,
                f"{len(order)} of {len(there)} cards have XRT's driver: {_list(order)}",
                "the device that was named is not there, or its driver does not hold it",
                "name one of those, by number or address; for one without a driver see below",
            )
    for card in there:
        # A card that no driver holds cannot be named: with no other it must be the one that was meant.
        mine = needed and (card.user in used or None in used)
        yield from _card(card, order, mine, machine)


def _list(order: list[pci.Function]) -> str:
    return ", ".join(f"xrt:{index} = {each.address}" for index, each in enumerate(order)) or "none"


def _card(card: pci.Card, order: list[pci.Function], needed: bool, machine: Machine) -> Iterator[Finding]:
    name = f"SmartSSD {card.address}"
    number = next((f"xrt:{index}" for index, each in enumerate(order) if each == card.user), "no number in XRT")
    drive = f", drive {' '.join(card.drives)}" if card.drives else ""
    yield Finding(SUBJECT, name, good(needed), f"{number}{drive}")
    if card.user is None:
        flash = f"sudo xbmgmt program --base --device {card.address}"
        yield Finding(
            SUBJECT,
            f"{card.slot} functions",
            bad(needed),
            "the factory image" if card.factory else "no user function",
            "no shell of XRT is in the card's flash, so nothing can run on it",
            f"install the platform's packages, then: {flash}; then power off and on (docs/smartssd.md)",
        )
        return
    yield from _drivers(card, needed)
    if card.user.driver != "xocl":
        return
    yield _ready(card.user, needed, machine)
    yield _shell(card.user, needed, machine)
    yield _link(card.user, needed, machine)
    yield _node(card.user, needed, machine)


def _drivers(card: pci.Card, needed: bool) -> Iterator[Finding]:
    for function, driver in ((card.management, "xclmgmt"), (card.user, "xocl")):
        if function is None or function.driver == driver:
            continue
        yield Finding(
            SUBJECT,
            f"{function.address} driver",
            bad(needed),
            function.driver or "none",
            f"XRT reaches the card through its driver {driver}"
            + ("; vfio-pci gives it to a virtual machine instead" if function.driver == "vfio-pci" else ""),
            f"sudo modprobe {driver}; if there is none of that name, dkms status xrt says why it was not built",
        )


def _ready(user: pci.Function, needed: bool, machine: Machine) -> Finding:
    name = f"{user.address} state"
    if machine.number(user.folder / "dev_offline") == 1 or machine.number(user.folder / "device_bad_state") == 1:
        return Finding(
            SUBJECT,
            name,
            bad(needed),
            "offline, or in a bad state",
            "the card's firewall has tripped or a reset did not end",
            f"xbutil reset --device {user.address}; if that fails, power off and on",
        )
    if not pci.is_ready(user, machine):
        return Finding(
            SUBJECT,
            name,
            bad(needed),
            "not ready",
            "XRT gives no program a card that is not ready: its shell does not match the packages, or it is starting",
            "sudo xbmgmt examine; flash the shell that is installed, then power off and on",
        )
    if machine.number(user.folder / "mig_calibration") == 0:
        return Finding(
            SUBJECT,
            name,
            bad(needed, State.WARNING),
            "ready, memory not calibrated",
            "the card's DDR is calibrated when an image is loaded; if it stays so, every buffer fails",
            f"xbutil validate --device {user.address}",
        )
    return Finding(SUBJECT, name, good(needed), "ready")


def _shell(user: pci.Function, needed: bool, machine: Machine) -> Finding:
    rom = pci.part(user, "rom", machine)
    name = machine.text(rom / "VBNV") if rom else None
    if name is None or name == SHELL or "_flat_gc_" in name:
        return Finding(SUBJECT, f"{user.address} shell", good(needed), name or "not told")
    return Finding(
        SUBJECT,
        f"{user.address} shell",
        bad(needed, State.WARNING),
        name,
        f"images for {SHELL} do not load under another shell",
        "build for this one (PLATFORM=, docs/vitis.md), or flash: sudo xbmgmt program --base (docs/smartssd.md)",
    )


def _link(user: pci.Function, needed: bool, machine: Machine) -> Finding:
    speed = machine.text(user.folder / "current_link_speed") or "unknown speed"
    width = machine.number(user.folder / "current_link_width")
    found = f"{speed} x{width if width is not None else '?'}"
    slow = width is not None and (width < _LINK[1] or not speed.startswith(_LINK[0]))
    if not slow:
        return Finding(SUBJECT, f"{user.address} link", good(needed), found)
    return Finding(
        SUBJECT,
        f"{user.address} link",
        bad(needed, State.WARNING),
        found,
        f"the card has {_LINK[0]} x{_LINK[1]}: copies to it are slower by as much",
        "another bay or riser; some machines power links down while idle: look again during a run",
    )


def _node(user: pci.Function, needed: bool, machine: Machine) -> Finding:
    names = [each.name for each in machine.entries(user.folder / "drm") if each.name.startswith("renderD")]
    node = machine.path(f"dev/dri/{names[0]}") if names else None
    if node is None or not machine.exists(node):
        found, wrong = "no render node", True
    else:
        found, wrong = f"/dev/dri/{node.name}", not os.access(node, os.R_OK | os.W_OK)
    if not wrong:
        return Finding(SUBJECT, f"{user.address} access", good(needed), found)
    return Finding(
        SUBJECT,
        f"{user.address} access",
        bad(needed),
        found,
        "this user cannot open the card",
        "sudo udevadm control --reload-rules && sudo udevadm trigger (XRT's rule 99-xocl.rules opens it to all), "
        "or in a container: --device /dev/dri",
    )
