"""Small files of the harness's four tasks in their official formats, with texts made for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

RECORDS: dict[str, dict[str, Any]] = {
    "openbookqa": {
        "id": "1-2",
        "question_stem": "A stone falls because of",
        "choices": {"text": ["gravity", "wind", "its color", "sound"], "label": ["A", "B", "C", "D"]},
        "answerKey": "C",
    },
    "rte": {"sentence1": "Ames stood on the hill.", "sentence2": "Ames stood.", "label": 0, "idx": 0},
    "piqa": {"goal": "To open a door,", "sol1": "turn the handle.", "sol2": "eat the handle.", "label": 1},
    "copa": {
        "premise": "The lamp went out.",
        "choice1": "The oil was used up.",
        "choice2": "The sun rose.",
        "question": "cause",
        "idx": 0,
        "label": 1,
    },
}
SPLITS = {"openbookqa": "test", "rte": "validation", "piqa": "validation", "copa": "validation"}
REQUESTS = {
    "openbookqa": ("A stone falls because of", [" gravity", " wind", " its color", " sound"], 2),
    "rte": ("Ames stood on the hill.\nQuestion: Ames stood. True or False?\nAnswer:", [" True", " False"], 0),
    "piqa": ("Question: To open a door,\nAnswer:", [" turn the handle.", " eat the handle."], 1),
    "copa": ("The lamp went out because", ["  the oil was used up.", "  the sun rose."], 1),
}
"""Context, choices and the gold one's number of each record. copa has two spaces: the harness's own and the task's."""


def folder(path: Path, records: int = 2) -> Path:
    """<path>/<task>/<split>.jsonl of all four; piqa's as the hub has it, in Parquet."""
    for task, record in RECORDS.items():
        rows = [record | {"idx": number} if "idx" in record else record for number in range(records)]
        file = path / task / f"{SPLITS[task]}.jsonl"
        file.parent.mkdir(parents=True)
        if task == "piqa":
            nested = file.parent / "data" / "validation-00000-of-00001.parquet"
            nested.parent.mkdir()
            pq.write_table(pa.Table.from_pylist(rows), nested)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
