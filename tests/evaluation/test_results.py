"""Results on disk: the same when read again, and refused when they are not what they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer.errors import SettingError
from hillinfer.evaluation.results import read_results, write_results
from tests.evaluation.made_up import made_up


def test_written_and_read(tmp_path: Path) -> None:
    results = made_up([1.0, 0.5])
    write_results(tmp_path / "a.json", results)
    assert read_results(tmp_path / "a.json") == results


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "holds no results of hillinfer eval"),
        ({"version": 2}, "is of version 2, this is 1: evaluate again"),
        ({"rows": [{"policy": "full"}]}, "is damaged: rows.0.budget: Field required"),
        ({"more": 1}, "is damaged: more"),
        ({"seed": -1}, "is damaged: seed"),
        ({"rows": []}, "has no rows: evaluate again"),
    ],
)
def test_what_it_is_not_is_said(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(json.loads(made_up([1.0]).model_dump_json()) | change))
    with pytest.raises(SettingError, match=message):
        read_results(path)


def test_no_file_no_json_nowhere_to_write(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        read_results(tmp_path / "none.json")
    for text in ("[1, ", "[" * 100_000):
        (tmp_path / "text.json").write_text(text)
        with pytest.raises(SettingError, match="is not JSON"):
            read_results(tmp_path / "text.json")
    with pytest.raises(SettingError, match="cannot be written"):
        write_results(tmp_path / "text.json" / "a.json", made_up([1.0]))
