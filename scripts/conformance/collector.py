"""A pytest plugin: which tests of one driver passed, failed, were skipped or do not apply, as JSON, test by test.

Written after each test: a process that hangs or dies has said what it had come to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

REPORT, DRIVER = "HILLINFER_CONFORMANCE_REPORT", "HILLINFER_CONFORMANCE"
OUTCOMES = ("passed", "failed", "skipped", "not_applicable")


def name_of(nodeid: str, driver: str) -> str:
    """A test's name without its folder and its driver: the same for all drivers."""
    return nodeid.rpartition("/")[2].replace(f"[{driver}-", "[").replace(f"[{driver}]", "")


class Collector:
    """Keeps the worst that happened to each test."""

    def __init__(self, driver: str, report: Path) -> None:
        self._driver, self._report = driver, report
        self._outcomes: dict[str, str] = {}

    def _note(self, nodeid: str, outcome: str) -> None:
        self._outcomes[name_of(nodeid, self._driver)] = outcome
        whole = {each: [name for name, was in self._outcomes.items() if was == each] for each in OUTCOMES}
        fresh = self._report.with_suffix(".part")
        fresh.write_text(json.dumps(whole), encoding="utf-8")
        fresh.replace(self._report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """conftest leaves out what does not apply to a driver."""
        for item in items:
            self._note(item.nodeid, "not_applicable")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Failed, should this be the last that is heard of it."""
        self._note(nodeid, "failed")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and tear-down report on their own."""
        if report.failed:
            self._note(report.nodeid, "failed")
        elif report.skipped:
            self._note(report.nodeid, "skipped")
        elif report.when == "call":
            self._note(report.nodeid, "passed")


def pytest_configure(config: pytest.Config) -> None:
    """The variables say which driver it is, and where the report goes."""
    config.pluginmanager.register(Collector(os.environ[DRIVER], Path(os.environ[REPORT])))
