"""What a storage device is called: ``software``, ``native``, ``rtl``, ``xrt:0``, ``xrt:0000:3b:00.1``, ``pynq:0``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hillinfer.errors import SettingError, nearest

KINDS = {
    "software": "the host's processor; runs everywhere",
    "native": "the kernel's C++ on the host's processor (make csim)",
    "rtl": "the kernel's RTL, simulated clock by clock (make rtl-device)",
    "xrt": "a SmartSSD through XRT: xrt:0 (its index) or xrt:0000:3b:00.1 (its BDF)",
    "pynq": "a SmartSSD through PYNQ 3.0.1: pynq:0",
}
"""Kinds of devices by name; ``csd.registry`` opens them."""

_CARDS = {
    "xrt": re.compile(r"\d+|([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE),
    "pynq": re.compile(r"\d+"),
}


@dataclass(frozen=True)
class DeviceName:
    """One device: its kind, one of ``KINDS``, and of xrt and pynq the card (index or BDF, as it was written)."""

    kind: str
    card: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.card}" if self.card else self.kind


def parse_devices(text: str) -> tuple[DeviceName, ...]:
    """The devices of a list with commas; SettingError for one that is none, or a card that is named twice."""
    names = tuple(_parse(part.strip()) for part in text.split(","))
    for name in names:
        if name.card and names.count(name) > 1:
            raise SettingError(f"the device {name} is named twice: a card is one device")
    if len(names) > 1 and DeviceName("software") in names:
        raise SettingError("the software device shares its keys with no other: name it alone, or only cards")
    return names


def _parse(text: str) -> DeviceName:
    kind, colon, card = text.partition(":")
    if kind not in KINDS:
        raise SettingError(f"unknown device {text!r}{nearest(kind, list(KINDS))}")
    pattern = _CARDS.get(kind)
    if pattern is None:
        if colon:
            raise SettingError(f"device {text!r}: {kind} has no cards to choose from, write {kind!r}")
    elif not pattern.fullmatch(card):
        example = f"{kind}:0 or {kind}:0000:3b:00.1 (its BDF)" if kind == "xrt" else f"{kind}:0"
        raise SettingError(f"device {text!r} names no card: write {example}")
    return DeviceName(kind, card.lower())
