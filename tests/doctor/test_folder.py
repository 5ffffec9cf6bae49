"""The cold folder, on the real file system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hillinfer.doctor import State, folder, mounts
from tests.doctor.box import Box


def test_a_folder_of_this_machine(look: Any, tmp_path: Path) -> None:
    folder_here = tmp_path / "cold"
    folder_here.mkdir()
    found = look(folder, "software", folder_here)
    assert found["folder"].found == str(folder_here)
    assert "MiB/s" in found["reads"].found
    assert list(folder_here.iterdir()) == []


def test_the_default_folder_is_not_made(look: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    assert look(folder, "software")["folder"].found.endswith("cache/cold (made when it is first used)")
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_is_not_there(look: Any, tmp_path: Path) -> None:
    finding = look(folder, "software", tmp_path / "none")["folder"]
    assert finding.state is State.MISSING
    assert f"mkdir -p {tmp_path / 'none'}" in finding.fix
    (tmp_path / "file").write_text("")
    assert look(folder, "software", tmp_path / "file")["folder"].found.endswith("is not a folder")


@pytest.mark.parametrize(("kind", "says"), [("tmpfs", "memory"), ("nfs4", "network"), ("fuse.sshfs", "network")])
def test_file_systems_that_cost_something(box: Box, look: Any, tmp_path: Path, kind: str, says: str) -> None:
    box.mount(Path("/"), "8:1")
    box.mount(tmp_path.resolve(), "0:40", kind, "source")
    finding = look(folder, "software", tmp_path)["file system"]
    assert finding.state is State.WARNING
    assert says in finding.means


def test_the_innermost_and_the_latest_mount_counts(box: Box) -> None:
    for place, source in (("/", "root"), ("/mnt/a b", "old"), ("/mnt/a b", "new"), ("/mnt/a", "sibling")):
        box.mount(Path(place.replace(" ", "\\040")), "8:1", "xfs", source)
    found = mounts.mount_of(box.machine, Path("/mnt/a b/cold"))
    assert found == mounts.Mount("8:1", "/mnt/a b", "xfs", "new")
