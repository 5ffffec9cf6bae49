"""The testbench that Vitis runs, compiled by g++ with the kernel as Vitis sees it, and the file it reads."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.vitis import cli, stimuli
from tb.qk_layout import Format

ROOT = Path(__file__).parents[2]
HLS = ROOT / "hls"


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def testbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program. __VITIS_HLS__ chooses the branches that no other build compiles."""
    folder = tmp_path_factory.mktemp("testbench")
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert cmake is not None, "cmake is missing: pip install cmake"
    run(cmake, "-S", HLS, "-B", folder, "-DCMAKE_CXX_FLAGS=-D__VITIS_HLS__", "-DCMAKE_BUILD_TYPE=Release")
    run(cmake, "--build", folder, "--target", "qk_score")
    program = folder / "tb_qk_score"
    includes = [f"-I{HLS / 'compat'}", f"-I{folder / 'generated'}"]
    flags = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", *includes]
    source, library = HLS / "vitis/tb_qk_score.cpp", [f"-L{folder}", "-lqk_score", f"-Wl,-rpath,{folder}"]
    run("g++", *flags, source, *library, "-o", program)
    return program


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stimulus file."""
    path = tmp_path_factory.mktemp("stimuli") / "stimuli.bin"
    assert cli.main(["stimuli", "--output", str(path)]) == 0
    return path


def simulate(testbench: Path, file: Path) -> tuple[int, str]:
    done = subprocess.run([testbench, file], capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout


def test_the_kernel_gives_what_the_model_expects(testbench: Path, file: Path) -> None:
    assert simulate(testbench, file) == (0, f"{len(stimuli.launches())} launches, 0 wrong\n")


def test_one_wrong_bit_is_found_and_named(testbench: Path, file: Path, tmp_path: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-64] ^= 1  # in the last trailer
    changed = tmp_path / "changed.bin"
    changed.write_bytes(data)
    code, said = simulate(testbench, changed)
    assert code == 1
    assert said.startswith(f"launch {len(stimuli.launches()) - 1}: beat 64, byte 0: 31534b51, expected 31534b50\n")
    assert said.endswith("1 wrong\n")


_TOO_LARGE = struct.pack("<I6i4I", 1, 0, 0, 0, 0, 0, 0, 5000, 0, 0, 0) + bytes(64 * 5000)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not a stimulus file"),
        (b"QKSTIM2\n" + bytes(100), "is not a stimulus file"),
        (stimuli.MAGIC + struct.pack("<I", 0), "is not a stimulus file"),
        (stimuli.MAGIC + struct.pack("<I", 1) + bytes(10), "launch 0 of .* is cut off"),
        (
            stimuli.MAGIC + struct.pack("<I6i4I", 1, 0, 0, 0, 0, 0, 0, 5000, 0, 0, 0) + bytes(64 * 5000),
            "larger than 4096",
        ),
    ],
    ids=["empty", "other magic", "no launches", "cut off", "too large"],
)
def test_files_that_are_none_are_refused(testbench: Path, tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "file.bin").write_bytes(data)
    code, said = simulate(testbench, tmp_path / "file.bin")
    assert code == 2
    assert re.search(says, said)


def test_arguments_are_checked(testbench: Path, tmp_path: Path) -> None:
    assert simulate(testbench, tmp_path / "none.bin") == (2, f"{tmp_path}/none.bin cannot be opened\n")
    assert subprocess.run([testbench], capture_output=True).returncode == 2


def test_launches_are_of_every_kind() -> None:
    launches = stimuli.launches()
    legal = [launch for launch in launches if launch.features.get("status", "0") == "0"]
    assert {launch.geometry.format for launch in legal} == set(Format)
    assert {launch.format >> 4 for launch in legal} == {0, 1}
    assert any(launch.geometry.pair for launch in legal)
    assert any(launch.geometry.dual for launch in legal)
    assert any(launch.n_tokens == 0 for launch in legal)
    assert {launch.features["status"] for launch in launches if launch not in legal} == {"1", "2", "4"}


def test_buffers_fit_what_co_simulation_copies() -> None:
    source = (HLS / "vitis/tb_qk_score.cpp").read_text()
    assert f"const unsigned kBeats = {stimuli.MAX_BEATS};" in source
    huge = replace(stimuli.launches()[0], keys=bytes(64 * (stimuli.MAX_BEATS + 1)))
    with pytest.raises(ValueError, match="is not 0 to 4096 beats"):
        stimuli.encode(huge)


def test_scalars_are_32_bits_whatever_their_sign() -> None:
    launch = stimuli.launches()[0]
    assert stimuli.encode(replace(launch, tag=0xFFFFFFFF)) == stimuli.encode(replace(launch, tag=-1))
