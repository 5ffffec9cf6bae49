"""Reading AMD's reports, and the gates: each fault fails its gate, and what is not there is never taken as good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.vitis import cli, csynth, timing, utilisation
from scripts.vitis.errors import VitisError
from scripts.vitis.provenance import kernel_sources
from tests.vitis.reports import CSYNTH, ROOT, TIMING, UTILISATION, csynth_xml
from tests.vitis.stand_ins import INFO


def write(tmp_path: Path, text: str, name: str = "report") -> Path:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


# ------------------------------------------------------------------------------------------------- synthesis


@pytest.mark.parametrize("version", ["2021.2", "2022.2", "2023.2", "2024.2"])
def test_intervals_are_read_by_loop(tmp_path: Path, version: str) -> None:
    report = csynth.read(write(tmp_path, csynth_xml({"pad_loop": 1, "wr_loop": 2, "load": None}, version=version)))
    assert report.version == version
    assert {loop.name: loop.ii for loop in report.loops} == {"pad_loop": 1, "wr_loop": 2, "load": None}
    assert (report.target_ns, report.uncertainty_ns, report.estimated_ns) == (3.33, 0.90, 2.433)
    assert report.resources["DSP"] == 291


def test_nested_loops_are_read_too(tmp_path: Path) -> None:
    inner = "<inner><Name>inner</Name><PipelineII>3</PipelineII></inner>"
    text = csynth_xml({"outer": None}).replace("<InstanceList/>", inner + "<InstanceList/>")
    assert {loop.name: loop.ii for loop in csynth.read(write(tmp_path, text)).loops} == {"outer": None, "inner": 3}


@pytest.mark.parametrize(
    ("intervals", "fault"),
    [
        ({"a": 1, "b": 2}, None),
        ({"a": 2, "b": 2}, "loop a in a_Pipeline_a has II = 2, its pragma wants 1"),
        ({"a": 1, "b": 3}, "loop b in b_Pipeline_b has II = 3, its pragma wants 2"),
        ({"a": None, "b": 2}, "loop a in a_Pipeline_a is not pipelined"),
        ({"b": 2}, "loop a is not in the report (merged, unrolled or renamed?)"),
    ],
)
def test_a_loop_must_have_the_interval_it_asks_for(
    tmp_path: Path, intervals: dict[str, int | None], fault: str | None
) -> None:
    report = csynth.read(write(tmp_path, csynth_xml(intervals)))
    assert csynth.faults(report, {"a": 1, "b": 2}) == ([fault] if fault else [])


def test_an_estimate_beyond_the_period_is_a_fault(tmp_path: Path) -> None:
    report = csynth.read(write(tmp_path, csynth_xml({"a": 1}, estimated="3.512")))
    assert csynth.faults(report, {"a": 1}) == ["the estimated period is 3.512 ns, the clock's is 3.330"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read"),
        ("<profile>", "cannot be read"),
        ("<profile/>", "lists no loops"),
        (csynth_xml({"a": 1}).replace("EstimatedClockPeriod", "Fmax"), "has no .*EstimatedClockPeriod: its format"),
        (csynth_xml({"a": 1}, estimated="undef"), "EstimatedClockPeriod is undef, not a number"),
    ],
)
def test_what_is_no_csynth_xml_is_told(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(VitisError, match=says):
        csynth.read(write(tmp_path, text))


def test_wanted_intervals_come_from_the_pragmas(tmp_path: Path) -> None:
    source = """
    // commented_out: for (;;) { #pragma HLS PIPELINE II=1
    first_loop:
      for (unsigned i = 0; i < n; i++) {
    #pragma HLS PIPELINE II=1
    second: for (int i = 0; i < 4; i++) {
        #pragma HLS pipeline
    unrolled_loop: for (int i = 0; i < 4; i++) {
    #pragma HLS UNROLL
    slow_loop: for (int i = 0; i < 4; i++) {  // why it is slow
    #pragma HLS PIPELINE off_by II = 2
#ifdef __VITIS_HLS__
    of_vitis: for (int i = 0; i < 4; i++) {
    #pragma HLS PIPELINE II=1
#else
    of_others: for (int i = 0; i < 4; i++) {
    #pragma HLS PIPELINE II=1
#endif
    """
    wanted = {"first_loop": 1, "second": 1, "slow_loop": 2, "of_vitis": 1}
    assert csynth.pipelined_loops([write(tmp_path, source)]) == wanted


def test_every_pipelined_loop_of_the_kernel_has_a_label_and_wants_one_cycle() -> None:
    sources = kernel_sources(ROOT)
    loops = csynth.pipelined_loops(sources)
    pragmas = sum(file.read_text().count("#pragma HLS PIPELINE") for file in sources)
    others = sum(file.read_text().count("#else") for file in sources if file.parent.name == "process")
    assert pragmas - others == len(loops) >= 9  # what stands in place of a branch for Vitis has one loop
    assert set(loops.values()) == {1}


# ---------------------------------------------------------------------------------------------------- timing


def test_slack_of_each_clock(tmp_path: Path) -> None:
    clocks = {clock.name: clock for clock in timing.read(write(tmp_path, TIMING))}
    assert set(clocks) == {"xdma_axi_aclk", "clk_kernel_00_unbuffered_net", "clk_kernel_01_unbuffered_net"}
    kernel = clocks["clk_kernel_00_unbuffered_net"]
    assert (kernel.period, kernel.setup, kernel.hold, kernel.endpoints) == (3.333, 0.021, 0.012, 143210)
    assert round(kernel.mhz) == 300


def test_of_two_kernel_clocks_the_busy_one_counts(tmp_path: Path) -> None:
    clocks = timing.read(write(tmp_path, TIMING))
    assert timing.kernel_clock(clocks).name == "clk_kernel_00_unbuffered_net"
    assert timing.kernel_clock(clocks, "xdma_axi_aclk").name == "xdma_axi_aclk"
    with pytest.raises(VitisError, match=r"None is called sys; KERNEL_CLOCK=<name> says so: xdma_axi_aclk, clk_ker"):
        timing.kernel_clock(clocks, "sys")


@pytest.mark.parametrize(
    ("change", "mhz", "fault"),
    [
        (("", ""), 300, None),
        (("   0.021  ", "  -0.310  "), 300, "misses setup by 0.310 ns: 274 MHz would be met"),
        (("   0.012  ", "  -0.005  "), 300, "misses hold by 0.005 ns"),
        (("", ""), 320, "was routed for 300 MHz, not for 320"),
    ],
)
def test_the_kernels_clock_must_hold(tmp_path: Path, change: tuple[str, str], mhz: int, fault: str | None) -> None:
    clock = timing.kernel_clock(timing.read(write(tmp_path, TIMING.replace(*change))))
    found = timing.faults(clock, mhz)
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]


@pytest.mark.parametrize("text", ["", TIMING[: TIMING.index("| Intra Clock Table")], UTILISATION])
def test_a_report_without_slacks_is_never_good(tmp_path: Path, text: str) -> None:
    with pytest.raises(VitisError, match="no Intra Clock Table with slacks"):
        timing.read(write(tmp_path, text))


def test_the_last_of_the_timing_summaries_counts(tmp_path: Path) -> None:
    with pytest.raises(VitisError, match="no routed timing summary"):
        timing.find(tmp_path)
    for name in ("temp/vpl/prj/impl_1/dr_timing_summary_routed.rpt", "imp/impl_1_bb_timing_summary_routed.rpt"):
        write(tmp_path, TIMING, name)
    assert timing.find(tmp_path).name == "impl_1_bb_timing_summary_routed.rpt"
    last = write(tmp_path, TIMING, "imp/impl_1_bb_timing_summary_postroute_physopted.rpt")
    assert timing.find(tmp_path) == last


# ----------------------------------------------------------------------------------------------- utilisation


def test_the_kernels_row(tmp_path: Path) -> None:
    use = utilisation.read(write(tmp_path, UTILISATION), "qk_score")
    assert use["LUT"] == utilisation.Use(50932, 15.39)
    assert use["DSP"] == utilisation.Use(291, 21.70)
    assert set(use) == {"LUT", "LUTAsMem", "REG", "BRAM", "URAM", "DSP"}
    with pytest.raises(VitisError, match="no row for the kernel vadd"):
        utilisation.read(write(tmp_path, UTILISATION), "vadd")


def test_limits(tmp_path: Path) -> None:
    use = utilisation.read(write(tmp_path, UTILISATION), "qk_score")
    assert utilisation.faults(use) == []
    assert utilisation.faults(use, {"DSP": 20.0}) == ["DSP: 21.7 % of the budget, the limit is 20 %"]
    assert utilisation.faults({}, {"DSP": 20.0}) == ["the report does not say how many DSP the kernel takes"]


# ---------------------------------------------------------------------------------------------------- report


@pytest.fixture
def built(tmp_path: Path) -> list[str]:
    """The arguments of report for a build with good reports, as older and newer releases lay them out."""
    write(tmp_path, CSYNTH, "hls/qk_score/solution1/syn/report/csynth.xml")
    write(tmp_path, TIMING, "link/reports/link/imp/impl_1_hw_bb_locked_timing_summary_routed.rpt")
    write(tmp_path, UTILISATION, "link/reports/link/imp/impl_1_kernel_util_routed.rpt")
    return ["report", "--hls", str(tmp_path / "hls"), "--link", str(tmp_path / "link")]


def test_good_reports_pass(built: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "build/reports/vitis.json"
    assert cli.main([*built, "--output", str(output)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said] == [["ok", "synthesis"], ["ok", "timing"], ["ok", "utilisation"]]
    assert json.loads(output.read_text())["timing"]["values"]["setup"] == 0.021


def test_a_failed_gate_is_an_exit_code(built: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, csynth_xml({"pad_loop": 3}), "hls/qk_score/solution1/syn/report/csynth.xml")
    assert cli.main([*built, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["synthesis"]["faults"]


def test_a_clock_that_was_lowered_is_a_fault(
    built: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, INFO.replace("300 MHz", "272 MHz"), "link/qk_score.xclbin.info")
    assert cli.main(built) == 1
    assert "v++ lowered the kernel's clock to 272 MHz" in capsys.readouterr().out


def test_a_report_that_cannot_be_written(built: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*built, "--output", str(write(tmp_path, "", "file") / "vitis.json")]) == 2
    assert capsys.readouterr().err.startswith(f"vitis: {tmp_path}/file: ")


def test_emulation_is_not_routed(built: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*built[:3], "--target", "hw_emu"]) == 0
    assert "timing" not in capsys.readouterr().out


def test_reports_that_are_not_there_fail_their_gates_and_no_others(
    built: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link/reports/link/imp/impl_1_kernel_util_routed.rpt").unlink()
    assert cli.main(built) == 1
    said = capsys.readouterr().out
    assert "ok    timing" in said
    assert "FAIL  utilisation  no figures\n      there is no kernel_util_routed.rpt under" in said
    assert cli.main(["report", "--hls", str(tmp_path / "nothing")]) == 1
    assert "run make xo first" in capsys.readouterr().out
