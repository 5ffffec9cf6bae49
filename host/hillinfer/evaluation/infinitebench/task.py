"""InfiniteBench as tasks."""

from __future__ import annotations

from pathlib import Path

from hillinfer.errors import DocumentError
from hillinfer.evaluation.dataset.family import Family
from hillinfer.evaluation.dataset.files import Source
from hillinfer.evaluation.dataset.prompt import answer_tokens, fit
from hillinfer.evaluation.dataset.records import Fields, Record, read_lines, text_name
from hillinfer.evaluation.infinitebench.prompts import CHOICES, answers, gold, prompt
from hillinfer.evaluation.infinitebench.subsets import SUBSETS
from hillinfer.evaluation.task import Asking, Item

_SOURCE = Source("infinitebench", "xinrongzhang2022/InfiniteBench")
_FIELDS: Fields = {
    "id": int,
    "context": str,
    "input": str,
    "answer": (str, int, float, list),
    "options": (list, str, type(None)),
}


class InfiniteBench(Family):
    """Scores are those of InfiniteBench's compute_scores.py for open models.

    Prompts stand in no chat template and keep their first and last half where they are too long, in tokens, as its
    eval_yarn_mistral.py does. The room is the longest context asked for less the answer's tokens; an answer has at most
    half of it: math_calc's has 30,000 tokens officially.
    """

    name = "infinitebench"
    source = "Zhang et al., ∞Bench (ACL 2024); github.com/OpenBMB/InfiniteBench"
    subsets = tuple(SUBSETS)
    retrieving = frozenset({"passkey", "number_string", "kv_retrieval"})

    def records(self, subset: str, data: Path | None, limit: int | None) -> list[Record]:
        """Records of <subset>.jsonl."""
        content, where = _SOURCE.read(f"{subset}.jsonl", data)
        records = read_lines(content, where, _FIELDS, limit)
        for record in records:
            if subset in CHOICES and len(record["options"] or ()) < 4:
                raise DocumentError(f"{where}, id {record['id']}: it has fewer than 4 options")
            answers(subset, record)
            prompt(subset, record | {"context": ""})
        return records

    def item(self, subset: str, record: Record, asking: Asking) -> Item:
        """The record's prompt; labels: subset."""
        room, text, right = max(asking.lengths), prompt(subset, record), answers(subset, record)
        new_tokens = min(SUBSETS[subset].new_tokens, room // 2)
        fitted = fit(asking.tokenizer, text, room - new_tokens, chat=False)
        return Item(
            identity=f"{subset}/{record['id']}",
            context=room,
            prompt=fitted.tokens,
            answer=answer_tokens(asking.tokenizer, text, gold(subset, right), False, new_tokens),
            references=right,
            new_tokens=new_tokens,
            labels={"subset": subset},
            cut=fitted.cut,
            text=text_name(record["context"]),
        )

    def score(self, item: Item, said: str) -> float:
        """The subset's metric."""
        return SUBSETS[str(item.labels["subset"])].judge(said, item.references)
