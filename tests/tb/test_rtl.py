"""Where the testbench finds Verilog and registers: the open flow's report, and what Vitis writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb.rtl import ARGUMENTS, RegisterMap, RtlError, find_rtl

# As Vitis HLS spaces them: 12 bytes from pointer to pointer, 8 from scalar to scalar.
OFFSETS = {name: 0x10 + 12 * i if i < 4 else 0x40 + 8 * (i - 4) for i, name in enumerate(ARGUMENTS)}


def hls2rtl_report() -> str:
    registers = {name: {"offset": offset, "width": 64} for name, offset in OFFSETS.items()}
    registers["axi_error"] = {"offset": 0x70, "width": 32}
    return json.dumps({"top": "qk_score", "registers": registers})


def driver_header() -> str:
    lines = ["// control", "#define XQK_SCORE_CONTROL_ADDR_AP_CTRL 0x00"]
    for name, offset in OFFSETS.items():
        lines.append(f"#define XQK_SCORE_CONTROL_ADDR_{name.upper()}_DATA {offset:#04x}")
        lines.append(f"#define XQK_SCORE_CONTROL_BITS_{name.upper()}_DATA 64")
    return "\n".join(lines)


def kernel_xml() -> str:
    args = "".join(f'<arg name="{name}" offset="{offset:#x}" size="0x8"/>' for name, offset in OFFSETS.items())
    return f'<root versionMajor="1"><kernel name="qk_score"><args>{args}</args></kernel></root>'


@pytest.mark.parametrize(
    ("name", "text", "extra"),
    [
        ("report.json", hls2rtl_report(), {"axi_error": 0x70}),
        ("xqk_score_hw.h", driver_header(), {}),
        ("kernel.xml", kernel_xml(), {}),
    ],
)
def test_register_maps(tmp_path: Path, name: str, text: str, extra: dict[str, int]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert RegisterMap.read(path) == OFFSETS | extra


def test_a_map_without_an_argument_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "xqk_score_hw.h"
    path.write_text(driver_header().replace("MIN_SCORE_DATA", "MINIMUM_DATA"))
    with pytest.raises(RtlError, match="min_score"):
        RegisterMap.read(path)


def test_the_open_flows_folder(tmp_path: Path) -> None:
    (tmp_path / "qk_score.sv").write_text("module qk_score; endmodule")
    (tmp_path / "report.json").write_text(hls2rtl_report())
    rtl = find_rtl(tmp_path)
    assert rtl.sources == (tmp_path / "qk_score.sv",)
    assert rtl.registers == tmp_path / "report.json"


def test_a_vitis_solution(tmp_path: Path) -> None:
    """Verilog of several files with memory contents beside them; the map is in the driver."""
    verilog = tmp_path / "solution" / "syn" / "verilog"
    driver = tmp_path / "solution" / "impl" / "misc" / "drivers" / "qk_score_v1_0" / "src"
    for folder in (verilog, driver):
        folder.mkdir(parents=True)
    for name in ("qk_score.v", "qk_score_multiply.v", "qk_score_rom.dat"):
        (verilog / name).write_text("")
    (driver / "xqk_score_hw.h").write_text(driver_header())
    rtl = find_rtl(tmp_path)
    assert [path.name for path in rtl.sources] == ["qk_score.v", "qk_score_multiply.v"]
    assert [path.name for path in rtl.data] == ["qk_score_rom.dat"]
    assert rtl.registers.name == "xqk_score_hw.h"


def test_what_a_folder_lacks_is_said(tmp_path: Path) -> None:
    with pytest.raises(RtlError, match="make rtl"):
        find_rtl(tmp_path)
    (tmp_path / "qk_score.v").write_text("")
    with pytest.raises(RtlError, match=r"kernel\.xml"):
        find_rtl(tmp_path)
