"""LongBench v2 as a task: zero-shot, without a chain of thought, as its pred.py asks by default."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from hillinfer.errors import DocumentError
from hillinfer.evaluation.dataset.files import Source
from hillinfer.evaluation.dataset.prompt import answer_tokens, fit
from hillinfer.evaluation.dataset.records import Record, read_list, text_name
from hillinfer.evaluation.metrics.choice import correct_answer_is
from hillinfer.evaluation.task import Asking, Item, Task

_SOURCE = Source("longbench-v2", "THUDM/LongBench-v2")
_CHOICES = {"$C_A$": "choice_A", "$C_B$": "choice_B", "$C_C$": "choice_C", "$C_D$": "choice_D"}
_TEXTS = ("_id", "domain", "sub_domain", "difficulty", "length", "question", *_CHOICES.values(), "answer", "context")
_FIELDS = dict.fromkeys(_TEXTS, str)
_NEW_TOKENS = 128


class LongBenchV2(Task):
    """1 for the right letter after "The correct answer is", 0 for another or none.

    The prompt (prompt.txt) is THUDM/LongBench's prompts/0shot.txt word for word, in the chat template, its first and
    last half where it is too long. Labels: difficulty (easy, hard), length (short, medium, long), domain, and the
    prompt's form.
    """

    name = "longbench-v2"
    source = "Bai et al., LongBench v2 (arXiv 2412.15204); github.com/THUDM/LongBench"

    def check(self, data: Path | None, limit: int | None) -> None:
        """Read the file."""
        _records(data, limit)

    def items(self, asking: Asking) -> Iterator[Item]:
        """Of data.json, in its order."""
        for record in _records(asking.data, asking.limit):
            yield self._item(record, asking)

    def _item(self, record: Record, asking: Asking) -> Item:
        room, text = max(asking.lengths), prompt(record)
        fitted = fit(asking.tokenizer, text, room - _NEW_TOKENS, chat=True)
        right = f"The correct answer is ({record['answer']})"
        return Item(
            identity=record["_id"],
            context=room,
            prompt=fitted.tokens,
            answer=answer_tokens(asking.tokenizer, text, right, True, _NEW_TOKENS),
            references=(record["answer"],),
            new_tokens=_NEW_TOKENS,
            labels={name: record[name] for name in ("difficulty", "length", "domain")} | {"prompt": fitted.form},
            cut=fitted.cut,
            text=text_name(record["context"]),
        )

    def score(self, item: Item, said: str) -> float:
        """Right or wrong."""
        return float(correct_answer_is(said) == item.references[0])


def _records(data: Path | None, limit: int | None) -> list[Record]:
    content, where = _SOURCE.read("data.json", data)
    records = read_list(content, where, _FIELDS)[:limit]
    for record in records:
        if record["answer"] not in ("A", "B", "C", "D"):
            raise DocumentError(f"{where}, _id {record['_id']}: the answer is {record['answer']!r}, not A to D")
    return records


def prompt(record: Record) -> str:
    """The question with its text, filled in in the official order: what a text says of $Q$ is filled in as well."""
    text = _template().replace("$DOC$", record["context"].strip()).replace("$Q$", record["question"].strip())
    for mark, field in _CHOICES.items():
        text = text.replace(mark, record[field].strip())
    return text


@cache
def _template() -> str:
    return files(__package__).joinpath("prompt.txt").read_text("utf-8")
