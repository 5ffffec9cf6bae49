"""``hillinfer report`` as it is typed."""

from __future__ import annotations

import json

import pytest

from tests.page.made_up import MEASURED


def test_a_page_and_its_pictures(hill, tmp_path):
    reports = tmp_path / "reports"
    reports.mkdir()
    for name in ("bench.json", "ablation.json"):
        (reports / name).write_bytes((MEASURED / name).read_bytes())
    (reports / "decode.json").write_text('{"spee')
    outcome = hill("report", "--reports", reports, "--pictures", tmp_path / "pictures")
    assert outcome.code == 0, outcome.err
    assert "decode.json cannot be shown: it is no JSON, or was cut short. To make it anew: hillinfer bench decode" in (
        " ".join(outcome.err.split())
    )
    assert "<title>" in (reports / "report.html").read_text()
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert names == {"summary.svg", "summary.png", "ablation.svg", "ablation.png"}


def test_what_is_shown_as_json(hill, tmp_path):
    (tmp_path / "bench.json").write_bytes((MEASURED / "bench.json").read_bytes())
    outcome = hill("report", "--reports", tmp_path, "--output", tmp_path / "page.html", "--json")
    told = json.loads(outcome.out)
    states = {section["section"]: section["state"] for section in told["sections"]}
    assert states["summary"] == "shown"
    assert states["decode"] == "missing"
    commands = {section["source"]: section["command"] for section in told["sections"]}
    assert commands["kernel.json"] == "make bench-kernel"
    assert told["page"] == str(tmp_path / "page.html")


@pytest.mark.parametrize("arguments", [["--reports", "nowhere"], ["--reports", ".", "--output", "/proc/page.html"]])
def test_what_cannot_be_done_is_one_line(hill, arguments):
    outcome = hill("report", *arguments)
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()[-1]) > 20
    assert "Traceback" not in outcome.err
