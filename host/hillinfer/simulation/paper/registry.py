"""Figures by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hillinfer.errors import SettingError, nearest
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.paper.figure import Figure
from hillinfer.simulation.paper.figures import balance, hetero, io_walls, latency, memory, placement

FIGURES: Mapping[str, Callable[[Hardware], Figure]] = {
    "memory": memory.memory,
    "io-walls": io_walls.io_walls,
    "migration": placement.migration,
    "waiting": balance.waiting,
    "lifetimes": placement.lifetimes,
    "latency": latency.latency,
    "speedup": latency.speedup,
    "extreme": latency.extreme,
    "ablation": latency.ablation,
    "beta": balance.beta,
    "hetero-decode": hetero.decode,
    "hetero-first-token": hetero.first_token,
    "hetero-threshold": hetero.threshold,
}
"""In the order of the papers."""


def find(name: str) -> Callable[[Hardware], Figure]:
    """SettingError for a name that no figure has, with the nearest."""
    if name not in FIGURES:
        raise SettingError(f"there is no figure {name!r}{nearest(name, list(FIGURES))}")
    return FIGURES[name]
