"""What the machine is to run: the settings of ``hillinfer generate`` that decide what is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wanted:
    """``device`` as in ``--device``: one name, or several of cards with commas between them."""

    device: str = "software"
    cold_dir: Path | None = None
    xclbin: Path | None = None

    @property
    def names(self) -> list[tuple[str, str]]:
        """Kind and card of each device: ``xrt:0,xrt:1`` gives ``[("xrt", "0"), ("xrt", "1")]``."""
        parts = [part.strip().partition(":") for part in self.device.split(",")]
        return [(kind, card) for kind, _, card in parts]

    def uses(self, *kinds: str) -> bool:
        """Whether one of the devices is of one of these kinds."""
        return any(kind in kinds for kind, _ in self.names)

    @property
    def cards(self) -> list[str]:
        """What was named behind the colons of xrt and pynq: numbers, or addresses on the PCI bus."""
        return [card or "0" for kind, card in self.names if kind in ("xrt", "pynq")]
