"""The card: the platform's packages, the shell in its flash, AMD's own test of it, and P2P."""

from __future__ import annotations

from hillinfer.doctor import cards as shells
from hillinfer.doctor import p2p as state
from hillinfer.doctor import pci

from .step import Command, Setting, Step, as_root

SHELL_FILE = "opt/xilinx/firmware/u2/gen3x4-xdma-gc/base/partition.xsabin"
_TOOLS = "/opt/xilinx/xrt/bin"
_NAMES = ("base", "validate")
_NO_CARD = ("there is no card (step card)",)


def present(setting: Setting) -> Step:
    """A card on the bus."""
    found = setting.cards
    return Step(
        name="card",
        what="a SmartSSD in the machine",
        why="everything after this is about it",
        found=", ".join(f"{card.address} ({_shell(card, setting) or 'no shell told'})" for card in found) or "none",
        done=bool(found),
        by_hand=(
            "firmware set-up: decoding above 4 GB on; virtualisation of devices (VT-d, AMD-Vi) off",
            "seat the drive in a U.2 bay of a server, with its airflow; lspci -d 10ee: shows its functions",
        ),
    )


def platform(setting: Setting) -> Step:
    """The shell's file, and the image of AMD's test."""
    files = [setting.package(f"xilinx-u2-gen3x4-xdma-gc-{name}_2-*_all.deb") for name in _NAMES]
    there = setting.machine.exists(setting.machine.path(SHELL_FILE))
    downloaded = [file for file in files if file is not None]
    complete = len(downloaded) == len(files)
    return Step(
        name="platform",
        what="the platform's packages, 2021.2 (xilinx-u2-gen3x4-xdma-gc-base and -validate, version 2)",
        why="the first brings the shell that images are built for, the second the image that xbutil validate runs",
        found=f"/{SHELL_FILE}" if there else "not installed",
        done=there,
        commands=(as_root("apt-get", "install", "-y", *downloaded),) if complete else (),
        by_hand=()
        if complete
        else (
            "download the deployment platform 2021.2 from AMD's SmartSSD page, unpack it (tar xzf …), and put",
            "  xilinx-u2-gen3x4-xdma-gc-base_2-…_all.deb and xilinx-u2-gen3x4-xdma-gc-validate_2-…_all.deb",
            f"  into {setting.packages.absolute()} (--packages names another folder)",
        ),
        undo="sudo apt-get remove xilinx-u2-gen3x4-xdma-gc-base xilinx-u2-gen3x4-xdma-gc-validate",
    )


def shell(setting: Setting) -> Step:
    """The shell in the flash of each card."""
    old = [card for card in setting.cards if _shell(card, setting) != shells.SHELL]
    addresses = [card.management.address if card.management else card.address for card in old]
    commands: tuple[Command, ...] = tuple(
        as_root(f"{_TOOLS}/xbmgmt", "program", "--device", address, "--base", "--image", f"/{SHELL_FILE}")
        for address in addresses
    )
    return Step(
        name="shell",
        what=f"{shells.SHELL} in each card's flash",
        why="a card from the factory runs nothing, and under another shell an image does not load",
        found=f"other than that: {', '.join(addresses)}" if old else "there" if setting.cards else "no card",
        done=bool(setting.cards) and not old,
        commands=commands if setting.flash else (),
        by_hand=_NO_CARD
        if not setting.cards
        else ()
        if setting.flash
        else (
            "back up the drive; end every program that uses the card; then run this again with --flash, which runs",
            *(f"  {' '.join(command)}" for command in commands),
            "power off and on afterwards (a warm reboot does not load a shell), and run this again",
        ),
        confirm=" ".join(addresses) if setting.flash else "",
        undo="sudo xbmgmt program --device <address> --revert-to-golden, then power off and on",
    )


def validate(setting: Setting) -> Step:
    """AMD's own test."""
    return Step(
        name="validate",
        what="xbutil validate on each card",
        why="what AMD's own kernels cannot do on it, ours cannot either",
        found="leaves no trace, so it is run each time (a minute per card; end programs that use it first)",
        done=None if setting.cards else False,
        commands=tuple((f"{_TOOLS}/xbutil", "validate", "--device", card.address) for card in setting.cards),
        by_hand=() if setting.cards else _NO_CARD,
    )


def p2p(setting: Setting) -> Step:
    """P2P, which a power cycle turns off again."""
    states = {card.address: _p2p(card, setting) for card in setting.cards}
    off = [address for address, told in states.items() if told == "disabled"]
    waiting = [address for address, told in states.items() if told == "no iomem"]
    return Step(
        name="p2p",
        what="P2P on for each card",
        why="keys that do not fit into the card's 4 GB go from its drive to its FPGA without crossing the host",
        found=", ".join(f"{address}: {told}" for address, told in states.items()) or "no card",
        done=bool(states) and set(states.values()) == {"enabled"},
        commands=tuple(
            as_root(f"{_TOOLS}/xbutil", "configure", "--device", address, "--p2p", "enable") for address in off
        ),
        by_hand=_NO_CARD
        if not states
        else ()
        if off
        else (
            "it is on, but the system has no room for it yet: warm reboot (sudo reboot), then run this again"
            if waiting
            else "it cannot be turned on: look at xbutil examine --report platform, P2P Status",
            "if it stays so: turn on decoding above 4 GB in the firmware, or go on without P2P (--skip p2p)",
        ),
        undo="sudo xbutil configure --device <address> --p2p disable (a power cycle does it too)",
    )


def _shell(card: pci.Card, setting: Setting) -> str:
    rom = pci.part(card.user, "rom", setting.machine) if card.user else None
    return (setting.machine.text(rom / "VBNV") if rom else None) or ""


def _p2p(card: pci.Card, setting: Setting) -> str:
    folder = pci.part(card.user, "p2p", setting.machine) if card.user else None
    return state.status(setting.machine.lines(folder / "config")) if folder else "not supported"
