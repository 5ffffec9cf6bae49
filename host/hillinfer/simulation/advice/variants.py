"""A box with another part in it: what people think of buying."""

from __future__ import annotations

from collections.abc import Mapping

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import Drive, Hardware, Number
from hillinfer.simulation.hardware.number import Positive

_T705 = "Crucial T705 2 TB, a PCIe 5 drive, Micron's product page"
PCIE5 = Drive(
    capacity=Positive(2e12, _T705),
    read=Positive(14.5e9, f"{_T705}: sequential reads"),
    write=Positive(12.7e9, f"{_T705}: sequential writes"),
    iops=Positive(1.55e6, f"{_T705}: random reads of 4 KiB"),
    latency=Number(80e-6, "not stated; a random read of TLC flash"),
)
AS_IT_IS = "as it is"


def variants(hardware: Hardware) -> Mapping[str, Hardware]:
    """The box as it is, and with one part changed; those that it has no place for are left out."""
    found = {AS_IT_IS: hardware}
    if hardware.smartssd is not None:
        cards = hardware.smartssd.cards
        found["twice the SmartSSDs"] = hardware.changed(
            smartssd__cards=Number(2 * cards, f"twice {cards:g}: they share every query by stretches of tokens")
        )
        found["a PCIe 5 SSD, no SmartSSD"] = hardware.model_copy(update={"ssd": PCIE5, "smartssd": None})
    else:
        found["a PCIe 5 SSD"] = hardware.model_copy(update={"ssd": PCIE5})
    dram = hardware.dram.capacity
    found["twice the DRAM"] = hardware.changed(dram__capacity=Number(2 * dram, f"twice {dram / 1e9:.4g} GB"))
    return found


def custom(
    hardware: Hardware,
    *,
    gpu_memory: int | None = None,
    dram: int | None = None,
    ssd: int | None = None,
    cards: int | None = None,
) -> Hardware:
    """The box with sizes of one's own, bytes each; None leaves it. SettingError for a part that it has not."""
    sizes = {"gpu__memory": gpu_memory, "dram__capacity": dram, "ssd__capacity": ssd, "smartssd__cards": cards}
    wanted = {path: size for path, size in sizes.items() if size is not None}
    if ssd is not None and hardware.smartssd is not None:
        wanted["smartssd__drive__capacity"] = ssd
    for path in wanted:
        part = path.split("__")[0]
        if getattr(hardware, part) is None:
            raise SettingError(f"the box {hardware.name} has no {part}: name one that has with --hardware")
    if any(size <= 0 for size in wanted.values()):
        raise SettingError("sizes of a box are above 0: leave an option out to keep the box's own")
    return hardware.changed(**{path: Number(size, "given on the command line") for path, size in wanted.items()})
