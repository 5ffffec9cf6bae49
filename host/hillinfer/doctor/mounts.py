"""Which file system a folder is on, and which drive that is on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hillinfer.doctor.machine import Machine

MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs", "rootfs"})
"""File systems that are DRAM."""
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "lustre", "beegfs", "9p", "afs"})
"""File systems on other machines (those of FUSE may be either)."""


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo: ``device`` is major:minor, ``point`` the folder it is mounted on."""

    device: str
    point: str
    type: str
    source: str

    @property
    def remote(self) -> bool:
        """Whether the bytes lie on another machine."""
        return self.type in NETWORK or self.type.startswith("fuse.sshfs")


def mount_of(machine: Machine, folder: Path) -> Mount | None:
    """The mount that holds ``folder`` (an absolute path on the machine itself); None when /proc does not tell."""
    best: Mount | None = None
    for line in machine.lines(machine.path("proc/self/mountinfo")):
        fields, _, rest = line.partition(" - ")
        left, right = fields.split(), rest.split()
        if len(left) < 5 or len(right) < 2:
            continue
        found = Mount(left[2], _unescaped(left[4]), right[0], _unescaped(right[1]))
        # Of those that hold the folder the innermost counts, and of two on one folder the later.
        if folder.is_relative_to(found.point) and (best is None or len(found.point) >= len(best.point)):
            best = found
    return best


def drive_of(machine: Machine, mount: Mount) -> Path | None:
    """The folder in /sys of the block device of a mount, its place on the PCI bus in its path; None without one."""
    return machine.target(machine.path(f"sys/dev/block/{mount.device}"))


def _unescaped(text: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, sign)
    return text
