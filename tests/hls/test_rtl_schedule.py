"""The kernel stays within what the open RTL flow accepts, at one beat per cycle and without a warning."""

from __future__ import annotations

import json
import re

import pytest
from hls2rtl import cli

from tests.hls import builds


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rtl")
    source = builds.HLS / "qk_score.cpp"
    assert cli.main([str(source), "--top", "qk_score", "--output", str(folder), "--quiet"]) == 0
    return json.loads((folder / "report.json").read_text())


def test_every_loop_starts_an_iteration_in_each_cycle(report):
    processes = {process["name"]: process["loops"] for process in report["processes"]}
    assert sorted(processes) == sorted(path.stem for path in (builds.HLS / "process").glob("*.h"))
    assert {loop["ii"] for loops in processes.values() for loop in loops} == {1}
    assert report["warnings"] == []


def test_the_arguments_are_registers_in_the_kernels_order(report):
    signature = re.search(r'extern "C" void qk_score\((.*?)\)', (builds.HLS / "qk_score.cpp").read_text(), re.S)
    assert signature is not None
    names = re.findall(r"(\w+)(?:,|$)", signature[1])
    offsets = [report["registers"][name]["offset"] for name in names]
    assert offsets == sorted(offsets)
    assert offsets[0] == 0x10


def test_streams_are_at_least_as_deep_as_they_were_asked_to_be(report):
    depths = dict(re.findall(r"STREAM variable=(\w+) depth=(\d+)", (builds.HLS / "qk_score.cpp").read_text()))
    assert {fifo["name"] for fifo in report["fifos"]} == set(depths)
    assert all(fifo["depth"] >= int(depths[fifo["name"]]) for fifo in report["fifos"])
