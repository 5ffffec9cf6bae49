"""The system under it: a release and a kernel that XRT 2.13's drivers build on, and what builds them."""

from __future__ import annotations

import platform

from hillinfer.doctor import Machine

from .step import Setting, Step, as_root

RELEASES = ("18.04", "20.04")
"""Ubuntu releases that AMD has packages of XRT 202210.2.13.466 for."""
_KERNELS = ((4, 15), (5, 16))
"""From and below which kernels the drivers are said to build: owners of cards run 5.4; on 6.5 they do not."""


def system(setting: Setting) -> Step:
    """Ubuntu 18.04 or 20.04 with its own kernel."""
    release = _release(setting.machine)
    kernel = kernel_release(setting.machine)
    numbers = tuple(int(part) for part in kernel.split("-")[0].split(".")[:2] if part.isdigit())
    known = release in [f"ubuntu {each}" for each in RELEASES]
    fits = _KERNELS[0] <= numbers < _KERNELS[1]
    return Step(
        name="system",
        what="Ubuntu 20.04 (or 18.04) on x86-64 with kernel 5.4",
        why="AMD's packages of XRT 202210.2.13.466 are for these, and its drivers do not build on kernels much newer",
        found=f"{release}, kernel {kernel}, {platform.machine()}",
        done=known and fits and platform.machine() == "x86_64",
        by_hand=(
            "install Ubuntu 20.04, or on it the kernel of its release:",
            "  sudo apt-get install linux-generic linux-headers-generic, then boot that one",
            "another system may do (docs/smartssd.md, other systems): go on with --skip system",
        ),
        undo="boot the other kernel again",
    )


def headers(setting: Setting) -> Step:
    """Headers of the running kernel, DKMS, and what the other steps call."""
    kernel = kernel_release(setting.machine)
    lacks = [
        name
        for name, place in (
            (f"linux-headers-{kernel}", f"lib/modules/{kernel}/build"),
            ("dkms", "usr/sbin/dkms"),
            ("pciutils", "usr/bin/lspci"),
        )
        if not setting.machine.exists(setting.machine.path(place))
    ]
    return Step(
        name="headers",
        what="headers of the running kernel, and DKMS",
        why="XRT's drivers are compiled on this machine when its package is installed",
        found=f"missing: {', '.join(lacks)}" if lacks else "all there",
        done=not lacks,
        commands=(as_root("apt-get", "update"), as_root("apt-get", "install", "-y", *lacks)),
        undo=f"sudo apt-get remove {' '.join(lacks)}" if lacks else "",
    )


def kernel_release(machine: Machine) -> str:
    """As ``uname -r`` says it."""
    return machine.text(machine.path("proc/sys/kernel/osrelease")) or "unknown"


def _release(machine: Machine) -> str:
    told = {}
    for line in machine.lines(machine.path("etc/os-release")):
        key, _, value = line.partition("=")
        told[key] = value.strip('"')
    return f"{told.get('ID', 'unknown')} {told.get('VERSION_ID', '')}".strip()
