"""XRT: which release, where, and whether drivers, libraries and Python module go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hillinfer.doctor import State, runtime
from tests.doctor.box import Box


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2.13.466", (2, 13, 466)),
        ("202210.2.13.466+dfsg-8", (2, 13, 466)),
        ("2.16.204,4b1fa7ec", (2, 16, 204)),
        ("2.13.0,f5505e402c", (2, 13, 0)),
        ("2.13", (2, 13)),
        ("unknown", ()),
        ("", ()),
    ],
)
def test_versions_in_every_spelling(text: str, numbers: tuple[int, ...]) -> None:
    assert runtime.version(text) == numbers


def test_amds_package_in_order(box: Box, look: Any, tmp_path: Path) -> None:
    box.xrt()
    box.machine.environ["XILINX_XRT"] = str(box.root / "opt/xilinx/xrt")  # type: ignore[index]
    box.machine.environ["PYTHONPATH"] = str(tmp_path / "python")  # type: ignore[index]
    (tmp_path / "python").mkdir()
    (tmp_path / "python/pyxrt.py").write_text("device = None")
    found = look(runtime)
    assert {finding.state for finding in found.values()} == {State.OK}
    assert found["libraries"].found == "2.13.466, /opt/xilinx/xrt/lib/libxrt_coreutil.so.2"
    assert found["pyxrt"].found == str(tmp_path / "python/pyxrt.py")


def test_debians_package(box: Box, look: Any) -> None:
    box.write("usr/lib/x86_64-linux-gnu/libxrt_coreutil.so.2", "")
    box.write(
        "var/lib/dpkg/status", "Package: other\nVersion: 1\n\nPackage: libxrt1\nVersion: 202210.2.13.466+dfsg-8\n"
    )
    assert look(runtime)["libraries"].found.startswith("202210.2.13.466+dfsg-8, /usr/lib/x86_64-linux-gnu/")


def test_a_machine_without_xrt(look: Any) -> None:
    found = look(runtime)
    assert {name for name, finding in found.items() if finding.state is State.MISSING} == {
        "libraries",
        "XILINX_XRT",
        "drivers",
        "pyxrt",
    }
    assert {finding.state for finding in look(runtime, "software").values()} == {State.UNNEEDED}


def test_emulation_needs_no_drivers(box: Box, look: Any) -> None:
    box.machine.environ["XCL_EMULATION_MODE"] = "hw_emu"  # type: ignore[index]
    assert look(runtime)["drivers"].state is State.UNNEEDED


@pytest.mark.parametrize(
    ("version", "says"), [("2.12.427", "not known"), ("2.16.204", "same calls"), ("2.18.1", "same")]
)
def test_another_release_is_told(box: Box, look: Any, version: str, says: str) -> None:
    box.xrt(version)
    found = look(runtime)
    assert found["XILINX_XRT"].state is (State.MISSING if version < "2.16" else State.OK)
    finding = found["libraries"]
    assert finding.state is State.WARNING
    assert says in finding.means


def test_drivers_of_another_release(box: Box, look: Any) -> None:
    box.xrt("2.13.466", drivers="2.16.204")
    assert look(runtime)["driver xocl"].found == "2.16.204, libraries 2.13.466"


def test_a_module_for_another_python(box: Box, look: Any, tmp_path: Path) -> None:
    box.xrt()
    box.write("opt/xilinx/xrt/python/pyxrt.cpython-38-x86_64-linux-gnu.so", "")
    assert "pyxrt.cpython-38" in look(runtime)["pyxrt"].found
    box.machine.environ["PYTHONPATH"] = str(tmp_path)  # type: ignore[index]
    (tmp_path / "pyxrt.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert look(runtime)["pyxrt"].found == "its import hangs or crashes"
