"""XRT itself: AMD's package, its drivers in the kernel, and who may open a card."""

from __future__ import annotations

from hillinfer.doctor import runtime

from .step import Setting, Step, as_root

VERSION = "202210.2.13.466"
PAGE = "AMD's download page of the Alveo U50 (2022.1; the SmartSSD's own page has an older one)"


def package(setting: Setting) -> Step:
    """The package xrt."""
    told = setting.machine.text(setting.machine.path(f"{runtime.INSTALLED}/version.json")) or ""
    found = runtime.version(_build(told))
    file = setting.package(f"xrt_{VERSION}_*-amd64-xrt.deb")
    return Step(
        name="xrt",
        what=f"XRT {VERSION}",
        why="the runtime, the drivers, pyxrt and the tools xbutil and xbmgmt; 2.13 is what this project ran (emulated)",
        found=".".join(map(str, found)) or "none in /opt/xilinx/xrt",
        done=bool(found) and found[:2] >= (2, 13),
        commands=(as_root("apt-get", "install", "-y", file),) if file else (),
        by_hand=()
        if file
        else (
            f"download xrt_{VERSION}_20.04-amd64-xrt.deb (18.04: the one of that name) from",
            f"  {PAGE}",
            f"into {setting.packages.absolute()} (--packages names another folder)",
        ),
        undo="sudo apt-get remove xrt",
    )


def drivers(setting: Setting) -> Step:
    """The modules xocl and xclmgmt."""
    machine = setting.machine
    absent = [name for name in ("xocl", "xclmgmt") if not machine.exists(machine.path(f"sys/module/{name}"))]
    return Step(
        name="drivers",
        what="XRT's drivers in the kernel",
        why="xocl runs kernels on a card, xclmgmt flashes shells and loads images",
        found=f"not loaded: {', '.join(absent)}" if absent else "loaded",
        done=not absent,
        commands=(as_root("dkms", "autoinstall"), as_root("modprobe", "-a", "xocl", "xclmgmt")),
        undo="sudo modprobe -r xocl xclmgmt; with Secure Boot their key must be enrolled first: sudo mokutil --import",
    )


def access(setting: Setting) -> Step:
    """udev's rules, by which everybody may open a card."""
    machine = setting.machine
    rules = [f"etc/udev/rules.d/99-{name}.rules" for name in ("xocl", "xclmgmt")]
    absent = [rule for rule in rules if not machine.exists(machine.path(rule))]
    return Step(
        name="access",
        what="XRT's udev rules",
        why="by them a card's node in /dev/dri is open to every user; nothing here has to run as root",
        found=f"missing: {', '.join(absent)}" if absent else "there",
        done=not absent,
        commands=(
            as_root("sh", "-c", "cp /usr/src/xrt-*/driver/xocl/*/99-x*.rules /etc/udev/rules.d/"),
            as_root("udevadm", "control", "--reload-rules"),
            as_root("udevadm", "trigger"),
        ),
        undo="delete the two files",
    )


def _build(told: str) -> str:
    """The value of BUILD_VERSION in version.json's text."""
    _, _, rest = told.partition('"BUILD_VERSION"')
    return rest.split('"')[1] if rest.count('"') >= 2 else ""
