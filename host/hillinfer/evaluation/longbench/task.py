"""LongBench and LongBench-E as tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hillinfer.errors import DocumentError
from hillinfer.evaluation.dataset.family import Family
from hillinfer.evaluation.dataset.files import Source
from hillinfer.evaluation.dataset.prompt import answer_tokens, fit
from hillinfer.evaluation.dataset.records import Fields, Record, read_lines, text_name
from hillinfer.evaluation.longbench.subsets import EVEN, SUBSETS, prompts
from hillinfer.evaluation.metrics.classification import classification
from hillinfer.evaluation.task import Asking, Item

_SOURCE = Source("longbench", "THUDM/LongBench", archive="data.zip")
_FIELDS: Fields = {
    "input": str,
    "context": str,
    "answers": list,
    "length": int,
    "language": str,
    "all_classes": (list, type(None)),
    "_id": str,
}


@dataclass(frozen=True)
class ClassItem(Item):
    """An item whose answer is one of several classes, in the record's order; none for most subsets."""

    classes: tuple[str, ...] = ()


class LongBench(Family):
    """Scores are those of LongBench's eval.py, over 100: the best over a record's right answers.

    Cut as pred.py does: a prompt that is too long keeps its first and last half, in tokens. Its room is the longest
    context asked for, less the answer's tokens and the chat template's, so that nothing outgrows that context.
    """

    name = "longbench"
    source = "Bai et al., LongBench (ACL 2024); github.com/THUDM/LongBench"
    subsets = tuple(SUBSETS)
    retrieving = frozenset({"passage_retrieval_en", "passage_retrieval_zh"})
    suffix = ""

    def records(self, subset: str, data: Path | None, limit: int | None) -> list[Record]:
        """Records of <subset>.jsonl."""
        content, where = _SOURCE.read(f"{subset}{self.suffix}.jsonl", data)
        records = read_lines(content, where, _FIELDS, limit)
        for record in records:
            if not record["answers"] or not all(isinstance(each, str) and each for each in record["answers"]):
                raise DocumentError(f"{where}, _id {record['_id']}: answers is not a list of texts")
            if not all(isinstance(each, str) for each in record["all_classes"] or ()):
                raise DocumentError(f"{where}, _id {record['_id']}: all_classes is not a list of texts")
            if SUBSETS[subset].metric is classification and not record["all_classes"]:
                raise DocumentError(f"{where}, _id {record['_id']}: all_classes is empty, and its metric needs them")
        return records

    def item(self, subset: str, record: Record, asking: Asking) -> Item:
        """The record's prompt; labels: subset, language, LongBench-E's class of length (words or characters), form."""
        how, room = SUBSETS[subset], max(asking.lengths)
        text = prompts()[subset].format(**record)
        fitted = fit(asking.tokenizer, text, room - how.new_tokens, how.chat)
        return ClassItem(
            identity=f"{subset}/{record['_id']}",
            context=room,
            prompt=fitted.tokens,
            answer=answer_tokens(asking.tokenizer, text, record["answers"][0], how.chat, how.new_tokens),
            references=tuple(record["answers"]),
            new_tokens=how.new_tokens,
            labels={
                "subset": subset,
                "language": record["language"],
                "length": length_class(record["length"]),
                "prompt": fitted.form,
            },
            cut=fitted.cut,
            text=text_name(record["context"]),
            classes=tuple(record["all_classes"] or ()),
        )

    def score(self, item: Item, said: str) -> float:
        """The subset's metric, the best over the right answers."""
        how = SUBSETS[str(item.labels["subset"])]
        if how.first_line:
            said = said.lstrip("\n").split("\n")[0]
        more = (item.classes,) if how.metric is classification and isinstance(item, ClassItem) else ()
        return max(how.metric(said, truth, *more) for truth in item.references)

    def settled(self, item: Item, said: str) -> bool:
        """After a line, where only the first one counts."""
        return SUBSETS[str(item.labels["subset"])].first_line and "\n" in said.lstrip("\n")


class LongBenchE(LongBench):
    """LongBench-E: 13 of the subsets with records of all lengths alike; files <subset>_e.jsonl."""

    name = "longbench-e"
    subsets = EVEN
    retrieving = frozenset({"passage_retrieval_en"})
    suffix = "_e"


def length_class(length: int) -> str:
    """LongBench-E's three classes of length."""
    return "0-4k" if length < 4000 else "4-8k" if length < 8000 else "8k+"
