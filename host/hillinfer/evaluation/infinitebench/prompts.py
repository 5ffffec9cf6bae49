"""What an InfiniteBench record asks, and what is right.

Templates (prompts.json) are OpenBMB/InfiniteBench's src/prompt.py, ``yarn_mistral_templates``, word for word: those its
authors use for every open model, without a chat template.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from hillinfer.errors import DocumentError
from hillinfer.evaluation.dataset.records import Record

_CALL = re.compile(r"func_[0-9]+\(-?[0-9]+\)")
_TARGET = re.compile(r"The .+ of")
_OPTIONS = ("OPTION_A", "OPTION_B", "OPTION_C", "OPTION_D")
_NUMBERS = {"math_find": "number", "math_calc": "whole number", "code_run": "whole number"}
CHOICES = frozenset({"code_debug", "longbook_choice_eng"})


@cache
def templates() -> dict[str, str]:
    """Format strings, by subset."""
    read: dict[str, str] = json.loads(files(__package__).joinpath("prompts.json").read_text("utf-8"))
    return read


def prompt(subset: str, record: Record) -> str:
    """The whole prompt; DocumentError where the record's question is not of the subset's form."""
    asked = record["input"]
    fields = {"context": record["context"], "input": asked, "question": asked}
    if subset in CHOICES:
        fields |= dict(zip(_OPTIONS, record["options"], strict=False))
    if subset == "code_run":
        call = _found(_CALL, subset, record)
        fields |= {"func_call": call, "func": call.split("(")[0]}
    if subset == "math_find":
        target = _found(_TARGET, subset, record).lower()[: -len(" of")]
        fields["prefix"] = f"What is {target} in the following list?"
    return templates()[subset].format(**fields)


def answers(subset: str, record: Record) -> tuple[str, ...]:
    """What is right, as text: numbers as JSON writes them; of a choice the option's text and its letter."""
    right = record["answer"] if isinstance(record["answer"], list) else [record["answer"]]
    if subset == "math_calc" and right and isinstance(right[0], list):
        right = right[0]
    for each in right:
        if not isinstance(each, str | int | float) or isinstance(each, bool):
            raise DocumentError(f"{_name(subset, record)}: its answer {json.dumps(each)[:60]} is no text and no number")
    told = tuple(each if isinstance(each, str) else json.dumps(each) for each in right)
    if not told or not all(told):
        raise DocumentError(f"{_name(subset, record)}: it has no answer")
    for each in told:
        if not _readable(subset, each):
            raise DocumentError(f"{_name(subset, record)}: its answer {each[:60]} is no {_NUMBERS[subset]}")
    if subset not in CHOICES or (len(told) == 2 and told[1] in tuple("ABCD")):
        return told
    if len(told) != 1 or told[0] not in record["options"][:4]:
        raise DocumentError(f"{_name(subset, record)}: its answer {', '.join(told)} is none of its options")
    return told[0], "ABCD"[record["options"].index(told[0])]


def _readable(subset: str, answer: str) -> bool:
    """Whether the subset's metric can read a right answer."""
    try:
        if _NUMBERS.get(subset) == "number":
            float(json.loads(answer))
        elif subset in _NUMBERS:
            int(answer)
    except (ValueError, TypeError):
        return False
    return True


def gold(subset: str, right: tuple[str, ...]) -> str:
    """A right answer as a model would say it here: the letter of a choice, the list of a calculation."""
    if subset == "math_calc":
        return f"[{', '.join(right)}]"
    return right[1] if subset in CHOICES else right[0]


def _found(form: re.Pattern[str], subset: str, record: Record) -> str:
    match = form.search(record["input"])
    if match is None:
        raise DocumentError(
            f"{_name(subset, record)}: its input {record['input'][:60]!r} asks for nothing of {form.pattern!r}"
        )
    return match.group()


def _name(subset: str, record: Record) -> str:
    return f"{subset}.jsonl, id {record['id']}"
