"""Evaluation, timing model and papers on the page of results, from files by their own writers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hillinfer.evaluation.plans import SMALL
from hillinfer.evaluation.results import ItemResult, Results, write_results
from hillinfer.evaluation.rows import rows_of
from hillinfer.simulation.hardware import load
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.report import as_dict as papers
from hillinfer.simulation.paper.statement import Read, Statement
from hillinfer.simulation.validation import Row as Validated
from hillinfer.simulation.validation import Validation
from hillinfer.simulation.validation import as_dict as validated
from scripts.results.keep import keep
from scripts.results.render import render, sources
from tests.evaluation.made_up import made_up, run

LIMIT = 60_000
"""Bytes that a kept report may have."""


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    folder = tmp_path / "measured"
    folder.mkdir()
    return folder


def kept(name: str, folder: Path, measured: Path, command: str = "") -> Path:
    """A report of ``folder``, kept."""
    source = next(each for each in sources() if each.file == name)
    assert keep(source, folder, measured, command)
    return measured / name


def lines(page: str) -> list[str]:
    return page.splitlines()


@pytest.mark.parametrize(("name", "title"), [("eval-small", "## Tasks"), ("eval-gemma", "## Tasks, a second model")])
def test_an_evaluation(tmp_path: Path, measured: Path, name: str, title: str) -> None:
    results = made_up([0.0, 0.0, 0.0, 0.0, 1.0])
    for row in results.rows:
        row.retrieval = True
    write_results(tmp_path / f"{name}.json", results)
    kept(f"{name}.json", tmp_path, measured)
    page = render(measured)
    assert title in lines(page)
    assert (
        "- **HillInfer at 10 %**: of 2 retrieval tasks and lengths that count, the 95 % interval allows for no loss of "
        "score on 0, but not on needle at 1,000 (-80.0 points), needle at 2,000 (-80.0 points), of the right answer's "
        "likelihood on 0, but not on needle at 1,000 (+1.600 nats), needle at 2,000 (+1.600 nats)."
    ) in lines(page)
    assert "- heterocache 50 % at 1,000 tokens: it has no profile." in lines(page)
    assert any(
        line.startswith("| hillinfer 10 % | 2 | 0 | 0 | -80.0 | -80.0 (-94.3 … -30.0) | +1.600 (")
        and line.endswith(" | 10 of 10 |")
        for line in lines(page)
    )
    assert "| policy | 0 % | 20 % | 40 % | 60 % | 80 % |" in lines(page)
    assert "| hillinfer 10 % | 0 | 0 | 0 | 0 | 100 |" in lines(page)
    of_score, of_nll = "-80.0 (-96.4 … -1.8)", "+1.600 (+0.490 … +2.710)"
    assert f"| 1,000 | hillinfer 10 % | 5 | 20 % | {of_score} | {of_nll} | 0.1000 | 0.0 (11 %) |" in lines(page)
    assert "| 1,000 | full | 5 | 100 % | – | – | 0.0000 | 0.0 (100 %) |" in lines(page)


def test_a_task_that_the_full_cache_fails_is_in_brackets(tmp_path: Path, measured: Path) -> None:
    write_results(tmp_path / "eval-small.json", made_up([0.0, 0.0], [0.0, 0.4]))
    kept("eval-small.json", tmp_path, measured)
    page = render(measured)
    assert "under one half: needle at 1,000 (20 %), needle at 2,000 (20 %)." in page
    assert "| policy | needle (does not count) |" in page
    assert "| 1,000 | hillinfer 10 % | 2 | (0 %) |" in page
    assert "HillInfer at 10 %" not in page


def small() -> Results:
    """As many rows as make eval-small has, with figures of full length."""
    policies = [("full", 1.0), ("hillinfer", 0.05), ("hillinfer", 0.1), ("hillinfer", 0.2), ("heterocache", 0.5)]
    policies += [(name, 0.2) for name in ("h2o", "quest", "snapkv", "streaming-llm")]
    items = [
        ItemResult(
            task=part.task,
            context=context,
            identity=str(number),
            prompt="a digest",
            labels={"depth": (number % 5 + 0.5) / 5} if part.task in ("needle", "passkey", "multi-key") else {},
            cut=0,
            runs=[
                run(policy, budget, None if part.task == "text" else 1 / (3 + number), 1 / (7 + at + number))
                for at, (policy, budget) in enumerate(policies)
            ],
        )
        for part in SMALL
        for context in part.lengths
        for number in range(part.limit or 1)
    ]
    for at, item in enumerate(items):
        for each in item.runs:
            each.device_bytes, each.hot_bytes, each.kl = 123_456_789 + at, 123_456_789 + at, 1 / (3 + at)
    rows = rows_of(items, {}, {part.task: True for part in SMALL}, 0)
    return Results(model="m", seed=0, versions={}, settings={"policies": []}, rows=rows, items=items)


def test_the_small_evaluation_is_kept_small(tmp_path: Path, measured: Path) -> None:
    write_results(tmp_path / "eval-small.json", small())
    path = kept("eval-small.json", tmp_path, measured)
    assert path.stat().st_size < LIMIT
    assert json.loads(path.read_text())["settings"] == {"policies": []}
    heading = next(line for line in lines(render(measured)) if line.startswith("| policy | text |"))
    assert "text (does not count)" not in heading


def test_the_timing_model_beside_the_clock(tmp_path: Path, measured: Path) -> None:
    rows = [
        Validated("full", 1024, 1.0, 50.0, 45.0, -0.1, {"cpu": 1.0}),
        Validated("hillinfer α=0.1", 1024, 0.2, 20.0, 25.0, 0.25, {"cpu": 0.8, "ssd": 0.3}),
    ]
    found = Validation(rows, load("paper"), [])
    (tmp_path / "simulate.json").write_text(json.dumps(validated(found, {"model": "tiny", "rounds": 1})))
    assert kept("simulate.json", tmp_path, measured).stat().st_size < LIMIT
    page = render(measured)
    assert "tiny here, decode steps measured and simulated" in page
    assert "1 of 2 simulated steps are within a fifth of measured ones; the mean error is 18%, the largest 25%." in page
    assert "| full | 1,024 | 100 % | 50.0 | 45.0 | -10% |" in page
    assert "| hillinfer α=0.1 | 1,024 | 20 % | 20.0 | 25.0 | +25% |" in page


def test_the_papers(tmp_path: Path, measured: Path) -> None:
    def said(low: float | None, high: float | None, says: str = "it is fast") -> Statement:
        return Statement("x", "speedup", says, "abstract", Read.abstract, "arXiv", low, high, "×")

    figures = [
        Figure(
            "speedup",
            "How much faster",
            [
                Row("met", 4.5, "×", said(4, 8), "the drive"),
                Row("missed", 2.0, "×", said(4, None), "the link"),
                Row("unnumbered", 3.0, "×", said(None, None)),
                Row("ours alone", 7.0, "×"),
            ],
            [Series("a curve", [1, 2], [3.0, None])],
        ),
        Figure("walls", "What waits", [Row("waits", 90.0, "%", said(None, None, "most of a step"))]),
    ]
    (tmp_path / "simulate-paper.json").write_text(json.dumps(papers(figures, load("paper"))))
    kept("simulate-paper.json", tmp_path, measured)
    page = render(measured)
    assert "1 of 2 values that the papers give as numbers are within 15% of what they state." in page
    assert "| How much faster | 1 of 2 |" in page
    assert "| What waits | no number stated |" in page
    assert "| met | 4–8 × | 4.5 × | within | the drive |" in page
    assert "| missed | ≥ 4 × | 2 × | -50% | the link |" in page
    assert page.index("<details>") < page.index("| unnumbered | it is fast | 3 × | – |  |")
    assert "ours alone" not in page


def test_what_is_not_kept_is_named_with_its_command(tmp_path: Path, measured: Path) -> None:
    assert "- Tasks: `make eval-small`" in lines(render(measured))
    write_results(tmp_path / "eval-small.json", made_up([1.0]))
    kept("eval-small.json", tmp_path, measured, "hillinfer eval --small --seed 1")
    page = render(measured)
    assert "- Tasks: `make eval-small`" not in lines(page)
    assert "by `hillinfer eval --small --seed 1`" in page
