"""Files are written whole, or not at all, and what is no file is written to."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from hillinfer.whole_file import write_whole


def test_a_file_takes_the_place_of_another_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    for content in ("first", b"second"):
        write_whole(path, content)
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    for content in ("first", "second"):
        write_whole(tmp_path / "link", content)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_text() == "second"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "told")
    reader.join()
    assert read == ["told"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_whole(Path(os.devnull), "nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_the_old_file_stays_where_the_new_one_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
