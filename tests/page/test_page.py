"""The page as text: what is there, what is missing, what is broken; nothing from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from hillinfer.page.chapter import Chapter
from hillinfer.page.contents import CHAPTERS
from hillinfer.page.sources import Source
from hillinfer.page.write import html, sections
from tests.page.made_up import evaluation


def quiet(_: str) -> None:
    """Nobody is told."""


def test_every_section_has_something_to_show(filled):
    for section in filled:
        assert section.found.content is not None, section.found.problem
        assert section.pictures or section.tables, section.chapter.key


def test_the_page_is_complete_in_itself(page):
    text = page.read_text()
    assert "<script" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)
    assert not re.findall(r"@import|url\((?!#|data:)", text)


def test_ids_are_unique_and_references_lead_somewhere(page):
    text = page.read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'(?:href="#|url\(#|aria-labelledby=")([^" )]+)', text):
        assert target in ids


def test_what_a_report_says_is_text_and_never_markup(page):
    assert "the disk &lt;waits&gt; &amp; the card does not" in page.read_text()


def test_figures_that_miss_their_goal_are_shown(page):
    text = page.read_text()
    assert "decode_8k_ratio" in text
    assert re.search(r'class="missed">missed', text)


def test_an_empty_folder_gives_a_page_that_says_what_to_run(tmp_path):
    filled = sections(tmp_path, quiet)
    text = html(filled, tmp_path)
    for chapter in CHAPTERS:
        assert f'id="{chapter.key}"' in text
        assert f"<code>{chapter.source.command}</code>" in text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("eval-small.json", json.dumps(evaluation() | {"version": 2}), "its version is 2 and this version reads 1"),
        ("eval-small.json", json.dumps({"kind": "hillinfer-eval", "version": 1}), "it has no “rows”"),
        ("decode.json", '{"tokens": 8192, "spe', "it is no JSON, or was cut short"),
        ("decode.json", "[]", "is not what this version writes"),
        ("bench.json", '{"summary": {"decode_8k_ratio": "fast"}}', "its “summary.decode_8k_ratio” is not"),
        ("trace.npz", "no archive", "no trace"),
        ("timeline.json", "{}", "it has no “traceEvents”"),
    ],
)
def test_a_broken_report_is_one_sentence_with_file_and_command(tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    broken = [section for section in sections(tmp_path, quiet) if section.found.broken]
    assert broken
    for section in broken:
        assert section.found.problem.startswith(name) or name in section.found.problem
        assert says in section.found.problem
        assert section.chapter.source.command in html([section], tmp_path)


def test_what_cannot_be_drawn_is_told_and_the_rest_is_shown(tmp_path, filled):
    (tmp_path / "empty.json").write_text("[]")
    source = Source("empty.json", "hillinfer bench nothing", lambda path: json.loads(path.read_text()))
    drawn = next(section.pictures[0] for section in filled if section.pictures)
    unsaved = replace(drawn, name="unsaved", title="Unsaved", figure=None)
    lost, half = (
        Chapter("Speed", "lost", "Lost", "No first row.", source, lambda rows: [rows[0]]),
        Chapter("Speed", "half", "Half", "One of two.", source, lambda _: [unsaved, drawn]),
    )
    found = sections(tmp_path, quiet, [lost, half])
    assert found[0].undrawn == ["The figures cannot be drawn from empty.json (IndexError: list index out of range)."]
    assert found[1].undrawn[0].startswith("The figure “Unsaved” cannot be drawn from empty.json (AttributeError")
    assert found[1].pictures == [drawn]
    text = html(found, tmp_path)
    assert "IndexError: list index out of range" in text
    assert f'id="figure-{drawn.name}"' in text
