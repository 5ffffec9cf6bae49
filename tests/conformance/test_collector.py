"""The report of a run: every test with what became of it, even when the process did not live to tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from scripts.conformance.__main__ import complaints
from scripts.conformance.collector import DRIVER, REPORT, name_of
from scripts.conformance.run import ROOT

SUITE = """
import os, pytest
@pytest.fixture(params=["card"])
def driver(request):
    return request.param
def test_good(driver): pass
@pytest.mark.parametrize("size", [1, 2])
def test_sized(driver, size): assert size == 1
def test_left_out(driver): pytest.skip("no reason")
@pytest.fixture
def broken():
    yield
    assert False
def test_torn_down(driver, broken): pass
def test_dies(driver): os._exit(9)
def test_never_reached(driver): pass
"""


def test_each_outcome_is_told_to_the_last_test_that_began(tmp_path):
    (tmp_path / "test_it.py").write_text(SUITE)
    report = tmp_path / "report.json"
    environment = os.environ | {DRIVER: "card", REPORT: str(report), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "scripts.conformance.collector", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "test_it.py"], cwd=tmp_path, env=environment, capture_output=True)
    assert done.returncode == 9
    outcomes = json.loads(report.read_text())
    assert outcomes == {
        "passed": ["test_it.py::test_good", "test_it.py::test_sized[1]"],
        "failed": ["test_it.py::test_sized[2]", "test_it.py::test_torn_down", "test_it.py::test_dies"],
        "skipped": ["test_it.py::test_left_out"],
        "not_applicable": [],
    }
    assert len(complaints(outcomes)) == 4


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/conformance/test_a.py::test_x[rtl]", "test_a.py::test_x"),
        ("tests/conformance/test_a.py::test_x[rtl-wide-max]", "test_a.py::test_x[wide-max]"),
        ("test_a.py::test_x", "test_a.py::test_x"),
    ],
)
def test_names_are_the_same_for_every_driver(nodeid, name):
    assert name_of(nodeid, "rtl") == name


def test_only_p2p_may_be_not_applicable():
    outcomes = {"passed": ["a"], "failed": [], "skipped": [], "not_applicable": ["t.py::test_p2p_x"]}
    assert complaints(outcomes) == []
    outcomes["not_applicable"].append("t.py::test_rows")
    assert complaints(outcomes) == ["t.py::test_rows is not applicable"]
