"""What a schedule promises, on the scoring kernel and on random programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hls2rtl.delays import delay
from hls2rtl.flow import Result, compile_kernel, compile_kernels
from hls2rtl.process import Loop, Process

from tests.hls2rtl.programs import program, source

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kernel() -> Result:
    return compile_kernel(_ROOT / "hls" / "qk_score.cpp", "qk_score", include=[_ROOT / "hls"])


@pytest.fixture(scope="module")
def processes(kernel: Result, tmp_path_factory: pytest.TempPathFactory) -> list[Process]:
    programs = [program(seed) for seed in range(900, 908)]
    path = tmp_path_factory.mktemp("schedule") / "programs.cpp"
    path.write_text(source(programs))
    results = [kernel, *compile_kernels(path, [p.name for p in programs], include=[_ROOT / "hls"])]
    return [process for result in results for process in result.design.processes]


def _loops(processes: list[Process]) -> list[tuple[Process, Loop]]:
    return [(process, loop) for process in processes for loop in process.loops]


def test_no_value_is_used_before_it_is_there(processes: list[Process]) -> None:
    for process, loop in _loops(processes):
        for node in loop.nodes:
            for arg in node.args[1:] if node.op == "state" else node.args:
                if arg.loop == loop.index and node.op != "state":
                    assert arg.stage <= node.stage, (process.name, loop.name, node.name)
                    if arg.stage == node.stage:
                        assert arg.time + delay(node) <= node.time + 1e-9 or node.op == "load"
        for effect in loop.effects:
            for value in (effect.predicate, effect.data):
                if value is not None and value.loop == loop.index and effect.kind in ("write", "store"):
                    assert value.stage <= effect.stage


def test_a_state_is_updated_where_it_is_kept(processes: list[Process]) -> None:
    """Otherwise the next turn would read it before this one has written it."""
    for _, loop in _loops(processes):
        for state in loop.states:
            if state.args[1].loop == loop.index:
                assert state.args[1].stage == state.stage


def test_reads_and_the_end_are_decided_in_the_first_stage(processes: list[Process]) -> None:
    for _, loop in _loops(processes):
        decisions = [loop.proceed, *(e.predicate for e in loop.effects if e.kind == "read")]
        results = [e.result for e in loop.effects if e.kind == "read"]
        for node in (*decisions, *results):
            assert node is None or node.loop != loop.index or node.stage == 0


def test_memories_are_read_and_written_in_one_stage(processes: list[Process]) -> None:
    """So that a turn sees what all turns before it have stored."""
    for process, loop in _loops(processes):
        for name in process.memories:
            stores = {effect.stage for effect in loop.of("store", name)}
            loads = {effect.result.stage for effect in loop.of("load", name) if effect.result}
            assert len(stores) <= 1
            if stores and loads:
                assert stores == loads


def test_the_budget_is_kept_or_the_report_warns(processes: list[Process]) -> None:
    budget = 2.49
    for process, loop in _loops(processes):
        if loop.critical > budget:
            assert any(loop.name in warning for warning in process.warnings)


def test_the_kernel_s_clock_is_met_by_the_model(kernel: Result) -> None:
    assert kernel.report["warnings"] == []
    assert all(loop["ii"] == 1 for process in kernel.report["processes"] for loop in process["loops"])


def test_every_name_is_declared_before_it_is_used(kernel: Result) -> None:
    for module in re.findall(r"^module .*?^endmodule", kernel.verilog, re.MULTILINE | re.DOTALL):
        lines = [line.split("//")[0] for line in module.splitlines()]
        declared = {
            found[1]: number
            for number, line in enumerate(lines)
            if (found := re.match(r"\s*(?:wire|logic)(?: \[[^]]*\])? (\w+)", line))
        }
        for number, line in enumerate(lines):
            early = [word for word in re.findall(r"[A-Za-z_]\w*", line) if declared.get(word, 0) > number]
            assert not early, (lines[0], early)


def test_a_faster_clock_takes_more_stages(kernel: Result) -> None:
    fast = compile_kernel(_ROOT / "hls" / "qk_score.cpp", "qk_score", clock_ns=2.0, include=[_ROOT / "hls"])
    stages = [
        {f"{p['name']}.{loop['name']}": loop["depth"] for p in result.report["processes"] for loop in p["loops"]}
        for result in (kernel, fast)
    ]
    assert stages[1]["multiply.multiply"] > stages[0]["multiply.multiply"]
    assert fast.report["warnings"]  # some recurrence does not fit 1.5 ns, and says so
