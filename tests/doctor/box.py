"""A machine with SmartSSDs as files in a folder: what the doctor would read on one. Nobody here has a card.

Names, files and values are those of XRT 2.13's drivers and of listings that owners of cards have published.
"""

from __future__ import annotations

import os
from pathlib import Path

from hillinfer.doctor import Machine

SHELL = "xilinx_u2_gen3x4_xdma_gc_base_2"
GIB4 = 1 << 32
HIGH = "0x0000383f00000000 0x0000383fffffffff 0x000000000014220c"
LOW = "0x00000000c0000000 0x00000000c1ffffff 0x0000000000140204"


class Box:
    """``card`` adds a SmartSSD behind a switch of its own; everything can be changed afterwards with ``write``."""

    def __init__(self, root: Path, environ: dict[str, str] | None = None) -> None:
        self.root = root
        self.machine = Machine(root, {} if environ is None else environ)
        self.write("sys/bus/pci/devices/.keep", "")

    def write(self, place: str, text: str) -> Path:
        """A file with its folders."""
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def link(self, place: str, target: Path) -> None:
        """A relative link, as all of /sys are."""
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(target, path.parent))

    def function(self, address: str, above: str, device: int, kind: int, driver: str = "", vendor: int = 0x10EE) -> str:
        """A function on the bus below the folder ``above`` of /sys/devices; its own folder's place."""
        place = f"{above}/{address}"
        self.write(f"{place}/vendor", f"{vendor:#06x}\n")
        self.write(f"{place}/device", f"{device:#06x}\n")
        self.write(f"{place}/class", f"{kind << 8:#08x}\n")
        self.write(f"{place}/resource", f"{HIGH}\n{'0x0000000000000000 ' * 3}\n")
        self.link(f"sys/bus/pci/devices/{address}", self.root / place)
        if driver:
            folder = self.root / f"sys/bus/pci/drivers/{driver}"
            folder.mkdir(parents=True, exist_ok=True)
            self.link(f"{place}/driver", folder)
        return place

    def card(self, bus: int = 3, *, p2p: str = "enabled", drive: str = "nvme1", ready: bool = True) -> str:
        """A SmartSSD in order: a switch on two buses, FPGA and drive behind it. The place of the user function."""
        top = self.function(f"0000:{bus:02x}:00.0", f"sys/devices/pci0000:{bus - 1:02x}", 0x9134, 0x0604)
        left = self.function(f"0000:{bus + 1:02x}:00.0", top, 0x9234, 0x0604)
        right = self.function(f"0000:{bus + 1:02x}:01.0", top, 0x9434, 0x0604)
        slot = f"0000:{bus + 2:02x}:00"
        self.function(f"{slot}.0", left, 0x6987, 0x1200, "xclmgmt")
        user = self.function(f"{slot}.1", left, 0x6988, 0x1200, "xocl")
        self.write(f"{user}/ready", f"{ready:d}\n")
        self.write(f"{user}/mig_calibration", "1\n")
        self.write(f"{user}/current_link_speed", "8.0 GT/s PCIe\n")
        self.write(f"{user}/current_link_width", "4\n")
        self.write(f"{user}/rom.u.{bus}/VBNV", f"{SHELL}\n")
        self.write(f"{user}/drm/renderD{128 + bus}/dev", "226:128\n")
        self.write(f"dev/dri/renderD{128 + bus}", "")
        self.p2p(user, p2p)
        ssd = self.function(f"0000:{bus + 3:02x}:00.0", right, 0xA825, 0x0108, "nvme", vendor=0x144D)
        self.write(f"{ssd}/nvme/{drive}/{drive}n1/{drive}n1p1/dev", f"259:{bus}\n")
        self.link(f"sys/dev/block/259:{bus}", self.root / f"{ssd}/nvme/{drive}/{drive}n1/{drive}n1p1")
        return user

    def p2p(self, user: str, state: str) -> None:
        """The card's P2P in one of the states that XRT knows."""
        lines = {
            "enabled": f"bar:{GIB4}\nmax_bar:{GIB4}\nexp_bar:{GIB4}\nrbar:{GIB4}\nremap:{GIB4}\n0:bank0:{GIB4}\n",
            "disabled": f"bar:{1 << 25}\nmax_bar:{GIB4}\nexp_bar:{GIB4}\n",
            "no iomem": f"bar:{1 << 25}\nmax_bar:{GIB4}\nexp_bar:{GIB4}\nrbar:{GIB4}\n",
            "wrong remapper": f"bar:{GIB4}\nexp_bar:{GIB4}\nremap:{1 << 20}\n",
            "not supported": f"max_bar:{GIB4}\n",
        }
        self.write(f"{user}/p2p.u.0/config", lines[state])

    def mount(self, folder: Path, device: str, kind: str = "ext4", source: str = "/dev/nvme1n1p1") -> None:
        """The folder is the mount point of a file system on a block device."""
        line = f"36 25 {device} / {folder} rw,relatime shared:1 - {kind} {source} rw\n"
        with (self.root / "mounts").open("a") as file:
            file.write(line)
        self.write("proc/self/mountinfo", (self.root / "mounts").read_text())

    def xrt(self, version: str = "2.13.466", drivers: str | None = None) -> None:
        """AMD's package with its drivers loaded."""
        self.write("opt/xilinx/xrt/version.json", f'{{"BUILD_VERSION": "{version}", "BUILD_BRANCH": "2022.1"}}')
        self.write("opt/xilinx/xrt/lib/libxrt_coreutil.so.2", "")
        for driver in ("xocl", "xclmgmt"):
            self.write(
                f"sys/module/{driver}/version", f"{drivers or version},f5505e402c2ca1ffe45eb6d3a9399b23a0dc8776\n"
            )
