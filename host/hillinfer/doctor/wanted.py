"""What the machine is to run: the settings of ``hillinfer generate`` that decide what is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hillinfer.config import StoreSettings
from hillinfer.csd.names import DeviceName, parse_devices


@dataclass(frozen=True)
class Wanted:
    """``device``, ``cold_dir``, ``xclbin`` and ``device_keys`` as in StoreSettings, which checks them: SettingError."""

    device: str = "software"
    cold_dir: Path | None = None
    xclbin: Path | None = None
    device_keys: str = "auto"

    def __post_init__(self) -> None:
        StoreSettings(cold_dir=self.cold_dir, device=self.device, xclbin=self.xclbin, device_keys=self.device_keys)

    @property
    def names(self) -> tuple[DeviceName, ...]:
        """Each device that is named."""
        return parse_devices(self.device)

    def uses(self, *kinds: str) -> bool:
        """Whether one of the devices is of one of these kinds."""
        return any(name.kind in kinds for name in self.names)

    @property
    def cards(self) -> list[str]:
        """The cards that are named: numbers, or addresses on the PCI bus."""
        return [name.card for name in self.names if name.card]
