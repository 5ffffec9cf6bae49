"""Streams as deep as in hardware: a FIFO that is too shallow deadlocks here, and says which one."""

from __future__ import annotations

import itertools
import re

import pytest

from hillinfer.csd.native import Library
from hillinfer.errors import DeviceError
from tests.hls import builds
from tests.hls.cases import FORMATS, random_case


@pytest.mark.parametrize("keys", FORMATS)
def test_the_results_do_not_depend_on_the_depths(library, keys):
    for group, min_score in ((3, -32768), (8, 0), (1, 32767)):
        case = random_case(group, keys, 3, group, 64, 2500, min_score=min_score)
        assert case.run(library, exact_depth=True) == case.run(library) == case.expected()


def test_a_stream_that_cannot_hold_a_block_of_tuples_is_a_deadlock_that_names_it(tmp_path):
    pragma = "#pragma HLS STREAM variable=tuples depth="
    copy = builds.altered(tmp_path, "qk_score.cpp", f"{pragma}128", f"{pragma}48")
    shallow = Library(builds.by_cmake(tmp_path / "build", copy))
    case = random_case(1, "int8", 1, 1, 64, 1024)
    message = r"deadlock: .*compact waits for room in tuples \(depth 48\).*fill_slots waits for data in trailers"
    with pytest.raises(DeviceError, match=message):
        case.run(shallow, exact_depth=True)
    few = random_case(1, "int8", 1, 1, 64, 700)  # 44 beats of tuples
    assert few.run(shallow, exact_depth=True) == few.expected()


def test_elements_that_nobody_reads_are_an_error(tmp_path):
    copy = builds.altered(
        tmp_path, "process/read_keys.h", "times_tokens(plan, plan.row_beats)", "times_tokens(plan, plan.row_beats) + 1u"
    )
    greedy = Library(builds.by_cmake(tmp_path / "build", copy))
    with pytest.raises(DeviceError, match="stream key_beats still holds 1 elements"):
        random_case(1, "int8", 1, 1, 64, 10).run(greedy)


def test_every_stream_has_a_name_and_a_depth():
    top = (builds.HLS / "qk_score.cpp").read_text()
    declared = re.findall(r"(\w+)\(\"(\w+)\"\)", top)
    assert declared
    assert all(variable == name for variable, name in declared)
    depths = re.findall(r"^#pragma HLS STREAM variable=(\w+) depth=\d+$", top, re.M)
    assert sorted(depths) == sorted(name for _, name in declared)


def test_every_loop_and_every_process_has_a_name():
    """Schedule reports are read by them: each loop has a label, each file the process that it is named after."""
    for path in [*builds.HLS.glob("*.h"), *(builds.HLS / "process").glob("*.h")]:
        lines = path.read_text().splitlines()
        for before, line in itertools.pairwise(lines):
            if line.lstrip().startswith("for ("):
                assert re.fullmatch(r" *\w+:", before), f"{path.name}: {line}"
    for path in (builds.HLS / "process").glob("*.h"):
        assert re.findall(r"^void (\w+)\(", path.read_text(), re.M) == [path.stem]
