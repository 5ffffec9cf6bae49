"""``hillinfer simulate paper`` and ``simulate fit``: tables, JSON, and what they say to bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer.figures import paper, reports
from hillinfer.simulation.paper.held import Held


def test_a_figure_beside_its_statement(hill: Any, tmp_path: Path) -> None:
    output = tmp_path / "paper.json"
    shown = hill("simulate", "paper", "--figure", "migration", "--figure", "memory", "--output", output)
    assert shown.code == 0, shown.err
    for words in ("20–50 %", "30 GB", "within", "without HKM"):
        assert words in shown.out
    told = json.loads(output.read_text())
    assert {row["figure"] for row in told["rows"]} == {"migration", "memory"}
    statements = told["statements"]
    assert statements["with_number"] == 2
    assert str(Held(**statements)) in " ".join(shown.out.split())
    assert str(Held(**statements)) == paper.held(reports.Paper.model_validate(told))
    assert "(by our specification)" in shown.out
    answer = json.loads(hill("simulate", "paper", "--figure", "memory", "--output", output, "--json").out)
    assert answer == json.loads(output.read_text())


def test_figures_are_listed(hill: Any) -> None:
    assert "lifetimes" in json.loads(hill("simulate", "paper", "--list", "--json").out)["figures"]
    assert "hetero-decode" in hill("simulate", "paper", "--list").out


def test_fit_says_what_fits_where(hill: Any, tmp_path: Path) -> None:
    asked = [
        "simulate",
        "fit",
        "--model",
        "opt-6.7b",
        "--contexts",
        "2k",
        "--batches",
        1,
        "--methods",
        "hillinfer,full",
    ]
    output, plot = tmp_path / "fit.json", tmp_path / "fit.png"
    shown = hill(*asked, "--output", output, "--plot", plot)
    assert shown.code == 0, shown.err
    for words in ("opt-6.7b on paper", "2,048", "1.0 GiB", "twice the DRAM", "all where it is computed"):
        assert words in shown.out
    assert plot.stat().st_size > 1000
    [ours, full] = json.loads(output.read_text())["rows"]
    assert ours["kv_bytes"] == full["kv_bytes"] == 2**30
    assert ours["ms_per_step"] > 0


def test_a_plot_that_cannot_be_written(hill: Any, tmp_path: Path) -> None:
    asked = ["simulate", "fit", "--contexts", "2k", "--batches", 1, "--methods", "full"]
    shown = hill(*asked, "--output", tmp_path / "fit.json", "--plot", "/dev/null/fit.svg")
    assert shown.code == 2
    assert "/dev/null takes no files" in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["paper", "--figure", "lifetime"], "did you mean 'lifetimes'"),
        (["paper", "--hardware", "papers"], "did you mean 'paper'"),
        (["fit", "--model", "opt-6.7"], "did you mean 'opt-6.7b'"),
        (["fit", "--methods", "ful"], "did you mean 'full'"),
        (["fit", "--contexts", "long"], "write numbers"),
        (["fit", "--contexts", "0"], "at least 1"),
        (["fit", "--contexts", "1.0005k"], "write whole numbers"),
        (["fit", "--batches", "1.5"], "write whole numbers"),
        (["fit", "--plot", "fit.docx"], "name a file that ends in .svg, .png or .pdf"),
        (["fit", "--dram", "much"], "write a size such as"),
        (["fit", "--dram", "1GB", "--gpu-memory", "4GB"], "the weights of llama-3.1-8b are 16.1 GB"),
        (
            ["fit", "--contexts", "1024k", "--batches", 1, "--dram", "2GB", "--gpu-memory", "17GB", "--ssd", "4GB"],
            "serves up to",
        ),
    ],
)
def test_bad_input_is_one_line(hill: Any, asked: list[Any], words: str) -> None:
    shown = hill("simulate", *asked)
    assert shown.code == 2
    assert words in shown.err
    assert "Traceback" not in shown.err
