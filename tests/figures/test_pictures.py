"""Pictures: the same bytes every time, both themes, figures that are those of the report."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.figures import canvas, copies, fits, palette, paper, reports, summary, timeline, tokens
from hillinfer.figures.goals import GOALS
from hillinfer.page.chapter import Section
from hillinfer.page.write import sections
from tests.page.made_up import chrome_trace, every_report, recording


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> list[Section]:
    return sections(every_report(tmp_path_factory.mktemp("reports")), lambda _: None)


def test_every_picture_is_well_formed_and_follows_the_theme(filled):
    pictures = [picture for section in filled for picture in section.pictures]
    assert len({picture.name for picture in pictures}) == len(pictures)
    for picture in pictures:
        ET.fromstring(picture.file())
        svg = picture.svg()
        assert "var(--ink" in svg
        assert "DejaVu" not in svg
        assert not re.search(r"\d{4}-\d\d-\d\dT", svg)
        assert picture.table.rows
        assert all(len(row) == len(picture.table.headings) for row in picture.table.rows), picture.name


def test_the_same_report_gives_the_same_bytes_in_another_process():
    program = (
        "from tests.figures.test_pictures import summary, reports;"
        "print(summary.picture(reports.Bench(summary={'decode_8k_ratio': 0.5})).file())"
    )
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = summary.picture(reports.Bench(summary={"decode_8k_ratio": 0.5}))
    assert again.strip() == here.file().strip()
    assert here.png() == here.png()
    assert here.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("colour", [palette.INK, palette.SOFT, *palette.SERIES])
def test_colours_are_read_on_both_papers(colour):
    assert palette.contrast(colour, palette.PAPER["light"]) >= 4.5
    assert palette.contrast(palette.DARK[colour], palette.PAPER["dark"]) >= 4.5


@given(st.integers(0, 0xFFFFFF))
def test_black_or_white_is_read_on_any_colour(number):
    colour = f"#{number:06x}"
    assert palette.contrast(palette.on(colour), colour) >= 4.5


def test_contrast_is_as_wcag_has_it():
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_things_compared_never_look_alike():
    looks = [tuple(palette.look(number).values()) for number in range(26)]
    assert len(set(looks)) == len(looks)
    assert [look[0] for look in looks].count(palette.OURS) == 1


@given(st.sampled_from(sorted(GOALS)), st.floats(1e-3, 1e3))
def test_a_figure_meets_its_goal_exactly_where_it_reaches_it(name, value):
    goal = GOALS[name]
    assert goal.met(value) == (goal.reached(value) >= 1)
    [row] = summary.table(reports.Bench(summary={name: value})).rows
    assert row[4] == ("met" if goal.met(value) else "missed")


def test_copies_of_two_models_are_kept_apart():
    row = {"copy": "int8", "alpha": 0.1, "kv_share": 0.25}
    rows = [row | {"model": model, "kl_of_text": {"book": kl}} for model, kl in (("one", 0.1), ("two", 0.2))]
    table = copies.table(reports.Copies.model_validate({"rows": rows}))
    assert table.headings[2:] == ("one, book, α = 10%", "two, book, α = 10%")
    assert table.rows == [("int8", "25.0 %", "0.1000", "0.2000")]


def test_a_figure_that_is_missing_says_why():
    report = reports.Bench(summary={"balance_error": None}, reasons={"balance_error": "no second core"})
    [row] = summary.table(report).rows
    assert row[2:] == ("–", "≤ 0.15", "no second core", "–", "–")


def test_beside_a_figure_stands_what_stops_it():
    limit = {"bound": "the model alone", "value": 0.47, "distance": 1.28}
    report = reports.Bench.model_validate({"summary": {"decode_8k_ratio": 0.6}, "bounds": {"decode_8k_ratio": limit}})
    [row] = summary.table(report).rows
    assert row[3:] == ("≤ 0.55", "missed", "0.47", "1.28 ×")


def test_tokens_are_of_one_kind_each():
    trace = recording()
    assert trace.positions is not None
    for step in range(len(trace.steps)):
        kinds = tokens.kinds(trace.positions, step, 0)
        masks = np.stack([kinds.pinned, kinds.hot, kinds.selected_fast, kinds.selected_cold])
        assert masks.sum(axis=0).max() == 1
        assert set(np.flatnonzero(kinds.selected_fast | kinds.selected_cold)) == set(trace.positions.selected[step][0])
        assert set(np.flatnonzero(kinds.selected_cold)) == {3, 90 + step}


def test_selected_again_is_counted_from_step_to_step():
    trace = recording()
    assert trace.positions is not None
    sets = [set(step[0].tolist()) for step in trace.positions.selected]
    expected = np.mean([len(before & after) / len(before) for before, after in pairwise(sets)])
    picture = tokens.picture(trace)
    assert picture is not None
    assert picture.table.rows[0][-1] == f"{expected * 100:.1f} %"


def test_a_timeline_says_how_much_overlapped():
    picture = timeline.picture(reports.Timeline.model_validate(chrome_trace()))
    assert "In 33% of the whole run's busy time more than one was at work." in picture.says
    host, read = picture.table.rows
    assert host == ("host scores", "host score", "1", "1.0", "1.000")
    assert read == ("cold reads", "read", "1", "1.0", "1.000")


def test_a_box_that_nothing_fits_is_drawn():
    row = reports.FitRow(method="hillinfer", context=8192, batch=1, ms_per_step=None, why_not="no room")
    drawn = fits.picture(reports.Fits(kind="hillinfer-simulate-fit", version=1, hardware="small", rows=[row]))
    assert drawn.svg()
    assert "does not fit" in drawn.table.rows[0]


def test_a_legend_is_never_wider_than_the_page():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with canvas.style():
        figure, [axes] = canvas.panels()
        for number in range(5):
            axes.plot([0, 1], [number, 1], label=f"a method with a name as long as this one has, {number}")
        canvas.legend_above(figure, axes, columns=4)
        [legend] = figure.legends
        assert legend.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width <= figure.bbox.width


def test_a_papers_figure_has_a_plot_per_model_and_words_where_they_are_meant():
    curves = [reports.Curve(label=name, x=[1, 2], y=[1, 40], group=model) for model in "mn" for name in "ab"]
    each = reports.PaperFigure(figure="f", title="t", x="part", y="s", series=curves, ticks=["one", "two"])
    report = reports.Paper(kind="hillinfer-simulate-paper", version=1, rows=[], figures=[each])
    [picture] = paper.pictures(report)
    left, right = picture.figure.axes
    assert [left.get_title("left"), right.get_title("left")] == ["m", "n"]
    assert [text.get_text() for text in right.get_xticklabels()] == ["one", "two"]
    assert [text.get_text() for text in picture.figure.legends[0].get_texts()] == ["a", "b"]
    assert tuple(picture.table.headings) == ("s, by part", "one", "two")
    assert [row[0] for row in picture.table.rows] == ["a, m", "b, m", "a, n", "b, n"]
