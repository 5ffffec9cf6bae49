"""The page of results is what its measurements give, and a run's reports take their place whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hillinfer.errors import SettingError
from hillinfer.figures import reports
from hillinfer.figures.picture import Table
from hillinfer.page.sources import report
from scripts.results.__main__ import DOCS
from scripts.results.keep import keep
from scripts.results.render import markdown, render, sources
from tests.page.made_up import evaluation

EVALUATION = report("eval-small.json", "make eval-small", reports.Evaluation)


def test_the_committed_page_is_what_the_measurements_give():
    committed = (DOCS / "results.md").read_text(encoding="utf-8")
    assert committed == render(DOCS / "measured"), "make results, and commit the page with the measurements"


def test_every_kept_report_is_shown_with_date_and_command():
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    for path in (DOCS / "measured").glob("*.json"):
        stamp = json.loads(path.read_text(encoding="utf-8"))["measured"]
        assert f"{stamp['date']} by `{stamp['command']}`" in page, path.name
        assert all(remark in page for remark in stamp["remarks"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "eval-small.json").write_text(json.dumps(evaluation()))
    return folder


def test_a_report_is_kept_without_its_items_and_with_a_stamp(run, tmp_path):
    measured = tmp_path / "measured"
    measured.mkdir()
    (measured / "eval-small.json").write_text(json.dumps({"measured": {"remarks": ["about an older run"]}}))
    assert keep(EVALUATION, run, measured)
    kept = json.loads((measured / "eval-small.json").read_text())
    assert "items" not in kept
    assert len(kept["rows"]) == len(evaluation()["rows"])
    assert kept["measured"]["command"] == "make eval-small"
    assert kept["measured"]["remarks"] == []
    page = render(measured)
    assert "by `make eval-small`" in page
    assert "| hillinfer 10 % | 94 % | 20 % |" in page
    assert "## Decoding" not in page


def test_what_is_not_there_is_not_kept_and_what_is_broken_is_refused(run, tmp_path):
    assert not keep(report("decode.json", "hillinfer bench decode", reports.Decode), run, tmp_path)
    (run / "eval-small.json").write_text(json.dumps(evaluation() | {"version": 7}))
    with pytest.raises(SettingError, match=r"eval-small\.json .* make eval-small"):
        keep(EVALUATION, run, tmp_path)
    assert not (tmp_path / "eval-small.json").exists()


def test_a_measurement_without_a_stamp_is_refused(run):
    with pytest.raises(SettingError, match="no stamp"):
        render(run)


def test_every_report_in_json_of_the_page_can_be_kept():
    names = [source.file for source in sources()]
    assert len(names) == len(set(names))
    assert {"bench.json", "decode.json", "eval-small.json", "simulate-paper.json"} <= set(names)


def test_a_table_in_markdown():
    table = Table(("policy", "KL"), [("hillinfer", ".03"), ("a|b", ".5")])
    assert markdown(table) == "| policy | KL |\n| --- | ---: |\n| **hillinfer** | .03 |\n| a\\|b | .5 |"


def test_policies_without_the_full_cache_and_a_balance_without_its_error(tmp_path):
    policies, balance = (
        json.loads((DOCS / "measured" / f"{name}.json").read_text()) for name in ("policies", "balance")
    )
    without = [row for row in policies["rows"] if row["policy"] != "full"]
    (tmp_path / "policies.json").write_text(json.dumps(policies | {"rows": without}))
    (tmp_path / "balance.json").write_text(json.dumps(balance | {"summary": {}}))
    page = render(tmp_path)
    assert "The full cache's step" not in page
    assert "## Host and device in balance" in page
