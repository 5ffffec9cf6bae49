"""Small files in the data sets' own formats, with texts made for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hillinfer.evaluation.infinitebench.subsets import SUBSETS as INFINITE
from hillinfer.evaluation.longbench.subsets import SUBSETS as LONG

ANSWERS = {
    "trec": "Number",
    "lsht": "体育",
    "passage_count": "3",
    "passage_retrieval_en": "Paragraph 2",
    "passage_retrieval_zh": "段落2",
    "lcc": "return total",
    "repobench-p": "return total",
}
CLASSES = {"trec": ["Date", "Number"], "lsht": ["体育", "财经"]}


def long_record(subset: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    """A record of LongBench's."""
    chinese = subset.endswith("_zh") or subset in ("dureader", "vcsum", "lsht")
    return {
        "input": "谁在山上？" if chinese else "Who stood on the hill?",
        "context": "山上站着一个人，叫阿明。" if chinese else "A man named Ames stood on the hill {alone}.",
        "answers": [ANSWERS.get(subset, "阿明" if chinese else "Ames")],
        "length": 3000 + 3000 * number,
        "dataset": subset,
        "language": "zh" if chinese else "en",
        "all_classes": CLASSES.get(subset),
        "_id": f"{subset}-{number}",
    } | changes


def long_folder(folder: Path, records: int = 2, suffix: str = "") -> Path:
    """All of LongBench's files."""
    for subset in LONG:
        write_lines(folder / f"{subset}{suffix}.jsonl", [long_record(subset, number) for number in range(records)])
    return folder


def v2_record(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A record of LongBench v2's."""
    return {
        "_id": f"66f{number}",
        "domain": "Single-Document QA",
        "sub_domain": "Literary",
        "difficulty": ("easy", "hard")[number % 2],
        "length": ("short", "medium", "long")[number % 3],
        "question": "Who stood on the hill?\n",
        "choice_A": "Ames",
        "choice_B": "Bell",
        "choice_C": "Cole",
        "choice_D": "Dunn",
        "answer": "ABCD"[number % 4],
        "context": "\n A man stood on the hill. ",
    } | changes


def infinite_record(subset: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    """A record of InfiniteBench's."""
    asked: dict[str, tuple[str, Any]] = {
        "passkey": ("What is the pass key?", ["71432"]),
        "number_string": ("What is the sequence of digits?", "7143271432"),
        "kv_retrieval": ('Key: "a1"\nThe value associated with the specified key is: ', "b2-c3"),
        "longbook_choice_eng": ("Where was he?", ["Hill Farm"]),
        "longbook_qa_chn": ("谁在山上？", ["阿明", "明"]),
        "longdialogue_qa_eng": ("", ["AMES", "JOHN AMES"]),
        "math_find": ("The second largest number of the list is: ", [8.25]),
        "math_calc": ("", [3, 8, -1]),
        "code_run": ("Please give me the exact number of the return value of func_12(-3).", [-4]),
        "code_debug": ("", ["parse"]),
    }
    question, answer = asked.get(subset, ("Who was he?", ["Ames", "John Ames"]))
    options = {
        "longbook_choice_eng": ["Cellar", "Hill Farm", "Mill", "Town"],
        "code_debug": ["go", "run", "parse", "x.y"],
    }
    return {
        "id": number,
        "context": "def func_12(x):\n    return x - 1" if subset == "code_run" else "It was so {then}.",
        "input": question,
        "answer": answer,
        "options": options.get(subset, []),
    } | changes


def infinite_folder(folder: Path, records: int = 2) -> Path:
    """All of InfiniteBench's files."""
    for subset in INFINITE:
        write_lines(folder / f"{subset}.jsonl", [infinite_record(subset, number) for number in range(records)])
    return folder


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    """A JSON-lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records), "utf-8")
