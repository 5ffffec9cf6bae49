"""``hillinfer compare``: one table, paired where items are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer.evaluation.results import write_results
from tests.evaluation.made_up import made_up


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.json" for name in "abc"]
    write_results(paths[0], made_up([1.0, 0.0, 1.0, 1.0], model="one"))
    write_results(paths[1], made_up([1.0, 1.0, 1.0, 1.0], model="two"))
    write_results(paths[2], made_up([0.0, 0.0, 1.0, 1.0], prompts="other", model="three"))
    return paths


def test_the_table_says_what_is_paired(hill: Any, files: list[Path]) -> None:
    shown = hill("compare", *files)
    assert shown.code == 0, shown.err
    lines = [line for line in shown.out.splitlines() if "hillinfer@10%" in line and "1000" in line]
    assert [line.split("│")[3].strip() for line in lines] == ["1: one", "2: two", "3: three"]
    assert lines[0].split("│")[9].strip() == ""
    assert lines[1].split("│")[9].strip() == "+25.0%"
    assert lines[2].split("│")[9].strip() == "~-25.0%"
    assert "undefined" in shown.out
    assert str(files[2]) in shown.out


def test_json(hill: Any, files: list[Path]) -> None:
    answer = json.loads(hill("compare", *files[:2], "--json").out)
    ours = [row for row in answer["rows"] if row["policy"] == "hillinfer" and row["context"] == 1000]
    assert [row["file"] for row in ours] == list(map(str, files[:2]))
    assert ours[0]["change"] is None
    assert ours[1]["change"]["score"] == 0.25
    assert ours[1]["change"]["paired"] is True


def test_another_version_and_no_file_are_one_clear_error(hill: Any, files: list[Path], tmp_path: Path) -> None:
    files[1].write_text(files[1].read_text().replace('"version": 1', '"version": 9'))
    summary, bare = json.loads(files[2].read_text()), tmp_path / "bare.json"
    bare.write_text(json.dumps(summary | {"rows": []}))
    files[2].write_text(json.dumps({name: summary[name] for name in summary if name != "items"}))
    for path, message in (
        (files[1], "is of version 9"),
        (tmp_path / "none.json", "cannot be read"),
        (files[2], "has no items, as results that are kept in docs/measured: name the file that hillinfer eval wrote"),
        (bare, "has no rows: evaluate again"),
    ):
        shown = hill("compare", files[0], path)
        assert shown.code == 2
        assert message in shown.err
    assert hill("compare").code == 2
