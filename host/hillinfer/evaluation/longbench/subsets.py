"""LongBench's subsets: prompt, length of the answer and metric of each, as its own code has them.

From THUDM/LongBench, LongBench/: config/dataset2prompt.json (prompts.json here, word for word), dataset2maxlen.json,
eval.py and pred.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hillinfer.evaluation.metrics.classification import classification
from hillinfer.evaluation.metrics.code_similarity import code_similarity
from hillinfer.evaluation.metrics.number_share import count, retrieval
from hillinfer.evaluation.metrics.qa_f1 import qa_f1, qa_f1_chinese
from hillinfer.evaluation.metrics.rouge_l import rouge_l, rouge_l_chinese

Metric = Callable[[str, str], float] | Callable[[str, str, Sequence[str]], float]


@dataclass(frozen=True)
class Subset:
    """How one subset is asked and judged.

    new_tokens  the longest answer
    metric      of (said, truth); classification takes the classes too
    chat        the prompt stands in the chat template; not so for examples to go on from, and for code
    first_line  only the first line said counts
    """

    new_tokens: int
    metric: Metric
    chat: bool = True
    first_line: bool = False


SUBSETS = {
    "narrativeqa": Subset(128, qa_f1),
    "qasper": Subset(128, qa_f1),
    "multifieldqa_en": Subset(64, qa_f1),
    "multifieldqa_zh": Subset(64, qa_f1_chinese),
    "hotpotqa": Subset(32, qa_f1),
    "2wikimqa": Subset(32, qa_f1),
    "musique": Subset(32, qa_f1),
    "dureader": Subset(128, rouge_l_chinese),
    "gov_report": Subset(512, rouge_l),
    "qmsum": Subset(512, rouge_l),
    "multi_news": Subset(512, rouge_l),
    "vcsum": Subset(512, rouge_l_chinese),
    "trec": Subset(64, classification, chat=False, first_line=True),
    "triviaqa": Subset(32, qa_f1, chat=False, first_line=True),
    "samsum": Subset(128, rouge_l, chat=False, first_line=True),
    "lsht": Subset(64, classification, chat=False, first_line=True),
    "passage_count": Subset(32, count),
    "passage_retrieval_en": Subset(32, retrieval),
    "passage_retrieval_zh": Subset(32, retrieval),
    "lcc": Subset(64, code_similarity, chat=False),
    "repobench-p": Subset(64, code_similarity, chat=False),
}

EVEN = (
    *("qasper", "multifieldqa_en", "hotpotqa", "2wikimqa", "gov_report", "multi_news", "trec", "triviaqa", "samsum"),
    *("passage_count", "passage_retrieval_en", "lcc", "repobench-p"),
)
"""Subsets of LongBench-E, whose records are spread evenly over lengths."""


@cache
def prompts() -> dict[str, str]:
    """Format strings with the fields of a record, by subset."""
    read: dict[str, str] = json.loads(files(__package__).joinpath("prompts.json").read_text("utf-8"))
    return read
