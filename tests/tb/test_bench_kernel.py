"""bench-kernel on the RTL itself: each format's figures, and results that are wrong give none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.bench_kernel.__main__ import measure, table
from scripts.bench_kernel.measure import Variant, build_loop, run, variants
from tb.qk_layout import Format
from tb.rtl import RegisterMap, Rtl, RtlError, make_open_rtl

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rtl() -> Rtl:
    return make_open_rtl(ROOT, ROOT / "build" / "rtl")


@pytest.fixture(scope="module")
def program(rtl: Rtl) -> Path:
    return build_loop(rtl, ROOT / "build" / "sim")


@pytest.fixture(scope="module")
def registers(rtl: Rtl) -> RegisterMap:
    return RegisterMap.read(rtl.registers)


def test_every_format_has_its_variants() -> None:
    names = {each.name for each in variants()}
    casts = {"fp16_int8", "fp16_int4"}
    stored = {"int8", "int4"}
    assert names == casts | stored | {f"{name}_row1" for name in casts | stored} | {f"{name}_dual" for name in stored}


@pytest.mark.parametrize("variant", variants(), ids=lambda each: each.name)
def test_goals_are_reached(variant: Variant, program: Path, registers: RegisterMap) -> None:
    figures = measure(variant, program, registers)
    assert figures["beats"] >= 20_000
    assert figures["cycles_per_beat"] <= variant.goal
    assert figures["fixed_cycles"] <= 300
    at_300 = 64 * 300e6 / figures["cycles_per_beat"] / 1e9
    assert figures["gbps_at_300mhz"] == pytest.approx(at_300, rel=1e-3)
    assert figures["share_of_ddr_theory_at_300mhz"] == pytest.approx(at_300 / 19.2, rel=2e-3)
    assert variant.name in table({variant.name: figures})


def test_wrong_results_have_no_figures(program: Path, registers: RegisterMap, tmp_path: Path) -> None:
    launch = Variant("", Format.INT4, heads=1, group=1, d=128, goal=1).launch()
    wrong = replace(launch, expected=launch.expected[:-64] + bytes(64))
    with pytest.raises(RtlError, match="not those of the model"):
        run(program, registers, wrong, tmp_path, memory_latency=0)


def test_reads_outside_a_buffer_are_faults(program: Path, registers: RegisterMap, tmp_path: Path) -> None:
    launch = Variant("", Format.INT4, heads=1, group=1, d=128, goal=1).launch()
    with pytest.raises(RtlError, match="read outside a buffer"):
        run(program, registers, replace(launch, keys=launch.keys[:-64]), tmp_path, memory_latency=0)
