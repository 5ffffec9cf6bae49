"""Whether a drive can write straight into the card's memory: P2P, addresses above 4 GB, IOMMU, and which drive it is.

Only streamed keys gain by it (those that do not fit into the card's memory), and they can be streamed without, through
host memory: so nothing here is ever missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hillinfer.config import default_cold_dir
from hillinfer.doctor import mounts, pci
from hillinfer.doctor.emulation import emulating
from hillinfer.doctor.finding import Finding, State, bad, good
from hillinfer.doctor.machine import Machine, number
from hillinfer.doctor.wanted import Wanted

SUBJECT = "P2P"
_STREAMED = "keys that do not fit into the card's 4 GB cross host memory, and only --device-keys stream streams them"


def examine(machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """P2P of each card that is used, and what of the machine stands in its way."""
    needed = wanted.uses("xrt") and not emulating(machine) and wanted.device_keys != "resident"
    everything = pci.functions(machine)
    cards = [card for card in pci.cards(everything, machine) if card.user is not None and card.user.driver == "xocl"]
    used = [pci.chosen(card, everything, machine) for card in wanted.cards] if needed else []
    for card in cards:
        mine = needed and card.user in used
        yield _state(card, mine, machine)
        yield _iommu(card, mine, machine)
    if cards:
        yield _above_4g(needed, everything, machine)
        yield from _drive([card for card in cards if needed and card.user in used], cards, machine, wanted)


def status(config: list[str]) -> str:
    """``enabled``, ``disabled``, ``no iomem``, ``wrong remapper`` or ``not supported``: how XRT 2.13 reads p2p/config.

    The file has lines such as ``bar:4294967296``: the size of the BAR now, after a reboot (rbar), as it should be
    (exp_bar), and of what is mapped into it (remap).
    """
    size = {}
    for line in config:
        key, _, value = line.partition(":")
        parsed = number(value.strip())
        if parsed is not None:
            size[key.strip()] = parsed
    if "bar" not in size:
        return "not supported"
    if size.get("rbar", 0) > size["bar"]:
        return "no iomem"
    if size.get("remap", 0) not in (0, size["bar"]):
        return "wrong remapper"
    return "enabled" if size.get("exp_bar") == size["bar"] else "disabled"


def _state(card: pci.Card, needed: bool, machine: Machine) -> Finding:
    assert card.user is not None
    name = f"{card.address} P2P"
    folder = pci.part(card.user, "p2p", machine)
    found = status(machine.lines(folder / "config")) if folder else "not supported"
    if found == "enabled":
        return Finding(SUBJECT, name, good(needed), found)
    fixes = {
        "disabled": f"sudo xbutil configure --device {card.address} --p2p enable",
        "no iomem": "warm reboot (sudo reboot); if it stays so, turn on decoding above 4 GB in the firmware's set-up",
        "wrong remapper": f"sudo xbutil configure --device {card.address} --p2p disable, then enable it again",
        "not supported": "look again when the card is ready: xbutil examine --report platform says P2P Status",
    }
    return Finding(SUBJECT, name, bad(needed, State.WARNING), found, _STREAMED, fixes[found])


def _iommu(card: pci.Card, needed: bool, machine: Machine) -> Finding:
    assert card.user is not None
    name = f"{card.address} IOMMU"
    group = machine.target(card.user.folder / "iommu_group")
    if group is None:
        return Finding(SUBJECT, name, good(needed), "off")
    kind = machine.text(group / "type") or "on"
    return Finding(
        SUBJECT,
        name,
        bad(needed, State.WARNING),
        f"on ({kind})",
        "an IOMMU sends what goes from the drive to the FPGA up through the processor: P2P is much slower, or fails",
        "boot with intel_iommu=off or amd_iommu=off (firmware: VT-d or AMD-Vi off), if no virtual machine needs it",
    )


def _above_4g(needed: bool, everything: list[pci.Function], machine: Machine) -> Finding:
    name = "decoding above 4 GB"
    starts = [
        number(line.split()[0]) for each in everything for line in machine.lines(each.folder / "resource") if line
    ]
    if any(start is not None and start >= 1 << 32 for start in starts):
        return Finding(SUBJECT, name, good(needed), "in use")
    return Finding(
        SUBJECT,
        name,
        bad(needed, State.WARNING),
        "nothing on the bus lies above 4 GB",
        "P2P maps 4 GB of the card's memory, which the firmware cannot place; XRT then says no iomem",
        'firmware set-up: turn on "Above 4G Decoding" (or "64-bit resources", "memory mapped I/O above 4 GB")',
    )


def _drive(used: list[pci.Card], cards: list[pci.Card], machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """Whether the cold folder lies on the drive of a card that is used (of any card, when none is)."""
    folder = _existing(wanted.cold_dir or default_cold_dir())
    mount = mounts.mount_of(machine, folder)
    drive = mounts.drive_of(machine, mount) if mount else None
    owner = next(
        (card for card in used or cards if drive and card.bridge and drive.is_relative_to(card.bridge)),
        None,
    )
    if owner is not None:
        assert drive is not None
        yield Finding(SUBJECT, "the card's own drive", good(bool(used)), f"{drive.name}, of {owner.address}")
        return
    drives = " ".join(name for card in used or cards for name in card.drives) or "not found"
    yield Finding(
        SUBJECT,
        "the card's own drive",
        bad(bool(used), State.WARNING),
        f"the cold folder is on {drive.name if drive else 'no drive of its own'}, not on {drives}",
        "only from the card's own drive do keys reach the FPGA without crossing the host",
        "make a file system on that drive and name a folder on it with --cold-dir (docs/smartssd.md)",
    )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists, without links."""
    folder = folder.expanduser().absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.resolve()
