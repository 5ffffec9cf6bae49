"""The record beside an image: what it says, and what verify finds when image or sources are not those of the record."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts.vitis import cli, provenance
from scripts.vitis.errors import VitisError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a kernel, and beside it what does not go into the FPGA."""
    files = {
        "hls/qk_score.cpp": '#include <ap_int.h>\n#include "process/pad.h"\n',
        "hls/process/pad.h": '#pragma once\n  #  include "../plan.h"\n// #include "none.h"\n',
        "hls/plan.h": '#include "plan.h"  // itself\n',
        "hls/native.cpp": '#include "qk_score.cpp"\n',
        "hls/compat/ap_int.h": "",
        "hls/vitis/tb_qk_score.cpp": "",
    }
    for name, text in files.items():
        file = tmp_path / "repo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "repo"


@pytest.fixture
def image(root: Path) -> Path:
    """An image with its record."""
    file = root / "qk_score.xclbin"
    file.write_bytes(b"image")
    record = {
        "schema": provenance.SCHEMA,
        "sha256": {"xclbin": provenance.checksum(file), "sources": provenance.source_checksums(root)},
    }
    provenance.write(file, record)
    return file


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@test.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True)


def test_sources_are_those_that_go_into_the_fpga(root: Path) -> None:
    assert list(provenance.source_checksums(root)) == ["hls/plan.h", "hls/process/pad.h", "hls/qk_score.cpp"]


def test_an_image_agrees_with_its_record(image: Path, root: Path) -> None:
    assert provenance.verify(image, root) == []


def test_an_image_that_was_changed(image: Path, root: Path) -> None:
    image.write_bytes(b"imagf")
    assert provenance.verify(image, root) == ["qk_score.xclbin is not the file of its record: its SHA-256 differs"]


def test_sources_that_have_changed_since(image: Path, root: Path) -> None:
    (root / "hls/process/pad.h").write_text('#include "new.h"\n')
    (root / "hls/process/new.h").write_text("")
    (fault,) = provenance.verify(image, root)
    files = "hls/plan.h, hls/process/new.h, hls/process/pad.h"  # gone, come, edited
    assert fault == f"the kernel's sources have changed since it was built (make xclbin): {files}"


def test_a_source_that_is_not_there(image: Path, root: Path) -> None:
    (root / "hls/plan.h").unlink()
    with pytest.raises(VitisError, match=r"hls/plan\.h cannot be read: No such file"):
        provenance.verify(image, root)


def test_what_does_not_go_into_the_fpga_may_change(image: Path, root: Path) -> None:
    for name in ("hls/native.cpp", "hls/compat/ap_int.h", "hls/vitis/tb_qk_score.cpp"):
        (root / name).write_text("changed")
    assert provenance.verify(image, root) == []


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (None, "has no provenance"),
        ("", "cannot be read"),
        ("[]", "not a record of schema 1"),
        ('{"schema": 2}', "not a record of schema 1"),
        ('{"schema": 1}', "lacks sha256"),
        ('{"schema": 1, "sha256": {}}', "lacks the checksums of image and sources"),
    ],
)
def test_records_that_are_none(image: Path, root: Path, record: str | None, says: str) -> None:
    path = provenance.record_path(image)
    path.unlink() if record is None else path.write_text(record)
    with pytest.raises(VitisError, match=says):
        provenance.verify(image, root)


def test_a_record_without_its_image(image: Path, root: Path) -> None:
    image.unlink()
    with pytest.raises(VitisError, match="there is no image"):
        provenance.verify(image, root)


def test_git_state(root: Path) -> None:
    assert provenance.git_state(root) == {"revision": None, "dirty": None}
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "-m", "kernel")
    clean = provenance.git_state(root)
    assert len(clean["revision"]) == 40
    assert clean["dirty"] is False
    (root / "hls/qk_score.cpp").write_text("changed")
    assert provenance.git_state(root) == {**clean, "dirty": True}


def test_verify_on_the_command_line(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record: dict[str, Any] = provenance.read(image)
    record |= {"target": "hw", "platform": "p", "tools": {"link": "v++ 2022.2"}}
    record |= {"git": {"revision": "abc", "dirty": True}, "built": {"xclbin": "2026-01-01T00:00:00+00:00"}}
    provenance.write(image, record)
    # The record is of another tree than this repository, which verify compares with.
    assert cli.main(["verify", str(image)]) == 1
    said = capsys.readouterr().out
    assert "hw for p, v++ 2022.2" in said
    assert "of abc with local changes, built 2026-01-01" in said
    assert "FAIL  the kernel's sources have changed" in said
    assert cli.main(["verify", str(image), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["record"]["git"]["dirty"] is True
    assert cli.main(["verify", str(image.with_name("other.xclbin"))]) == 2
    assert "has no provenance" in capsys.readouterr().err
