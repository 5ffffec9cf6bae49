"""What the page's tests share: a folder with every report, and the page made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hillinfer.page.chapter import Section
from hillinfer.page.write import html, sections
from tests.page.made_up import every_report


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_report(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="session")
def filled(reports: Path) -> list[Section]:
    return sections(reports, lambda _: None)


@pytest.fixture(scope="session")
def page(reports: Path, filled: list[Section]) -> Path:
    path = reports / "report.html"
    path.write_text(html(filled, reports), encoding="utf-8")
    return path
