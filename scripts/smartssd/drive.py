"""The cold folder, on the drive of the card. A file system is never made here: that would erase the drive."""

from __future__ import annotations

from pathlib import Path

from hillinfer.doctor import mounts

from .step import Setting, Step, as_root


def cold_folder(setting: Setting) -> Step:
    """A folder on the card's drive that this user may write."""
    drives = [drive for card in setting.cards for drive in card.drives]
    folder = setting.cold_dir or _proposed(setting, drives)
    what = "a folder for the cold pool on the card's own drive"
    why = "only that drive reaches the FPGA without crossing the host; rows are read from it as from any SSD"
    if folder is None:
        device = f"/dev/{drives[0]}" if drives else "/dev/nvmeXn1"
        return Step(
            name="cold",
            what=what,
            why=why,
            found=f"no file system of the card's drive ({', '.join(drives) or 'not found'}) is mounted",
            done=False,
            by_hand=(
                f"the next line ERASES the drive: be sure (lsblk) that {device} is the card's and holds nothing",
                f"  sudo mkfs.ext4 -m 0 {device}",
                f"  sudo mkdir -p /mnt/smartssd && sudo mount -o noatime {device} /mnt/smartssd",
                "  and for after a reboot, in /etc/fstab: UUID=<blkid says it> /mnt/smartssd ext4 noatime,nofail 0 2",
                "or name a folder on any drive with --cold-dir (then without P2P)",
            ),
            undo="sudo umount /mnt/smartssd",
        )
    there = folder.is_dir()
    owner = Path.home().owner() if Path.home().exists() else "root"
    return Step(
        name="cold",
        what=what,
        why=why,
        found=f"{folder}{'' if there else ', not there yet'}",
        done=there,
        commands=(as_root("install", "-d", "-m", "700", "-o", owner, folder),),
        undo=f"rmdir {folder}",
    )


def _proposed(setting: Setting, drives: list[str]) -> Path | None:
    """A folder on the first mounted file system of a card's drive."""
    for line in setting.machine.lines(setting.machine.path("proc/self/mountinfo")):
        fields = line.split(" - ")[0].split()
        mount = mounts.mount_of(setting.machine, Path(fields[4])) if len(fields) > 4 else None
        drive = mounts.drive_of(setting.machine, mount) if mount else None
        if mount is not None and drive is not None and any(name in drive.parts for name in drives):
            return Path(mount.point) / "hillinfer-cold"
    return None
