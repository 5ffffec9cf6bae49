import json
from pathlib import Path

import pytest

from hillinfer.errors import DocumentError
from hillinfer.evaluation.longbench_v2.task import LongBenchV2, prompt
from hillinfer.evaluation.task import Asking, Item
from tests.evaluation.dataset.made_up import v2_record
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
WHOLE = (
    "Please read the following text and answer the question below.\n\n<text>\nA man stood on the hill.\n</text>\n\n"
    "What is the correct answer to this question: Who stood on the hill?\nChoices:\n(A) Ames\n(B) Bell\n(C) Cole\n"
    '(D) Dunn\n\nFormat your response as follows: "The correct answer is (insert answer here)".'
)


def items(folder: Path, records: list[dict[str, object]], room: int = 1000, limit: int | None = None) -> list[Item]:
    (folder / "data.json").write_text(json.dumps(records))
    return list(LongBenchV2().items(Asking(TOKENIZER, (room,), limit, data=folder)))


def test_the_official_prompt() -> None:
    assert prompt(v2_record()) == WHOLE


def test_items(tmp_path: Path) -> None:
    first, second = items(tmp_path, [v2_record(number) for number in range(3)], limit=2)
    assert WHOLE in TOKENIZER.decode(first.prompt)
    assert TOKENIZER.decode(first.prompt).endswith("<|turn|>assistant\n")
    assert TOKENIZER.decode(second.answer) == "The correct answer is (B)"
    assert (second.identity, second.new_tokens, second.references) == ("66f1", 128, ("B",))
    assert second.labels == {"difficulty": "hard", "length": "medium", "domain": "Single-Document QA", "prompt": "chat"}


def test_scores(tmp_path: Path) -> None:
    task, item = LongBenchV2(), items(tmp_path, [v2_record(2)])[0]
    assert task.score(item, "The correct answer is (C).") == 1
    assert task.score(item, "The correct answer is (A).") == 0
    assert task.score(item, "C") == 0


def test_long_texts_are_cut_in_the_middle(tmp_path: Path) -> None:
    item = items(tmp_path, [v2_record(context="a" * 500 + "b" * 500)], room=700)[0]
    assert len(item.prompt) + item.new_tokens in (699, 700)
    text = TOKENIZER.decode(item.prompt)
    assert "Please read" in text
    assert "insert answer here" in text
    assert (
        item.cut == len(prompt(v2_record(context="a" * 500 + "b" * 500))) - (700 - 128 - len(text_frame(text))) // 2 * 2
    )


def text_frame(text: str) -> list[int]:
    """Tokens of the chat template in a prompt."""
    start, end = text.index("Please"), text.rindex("<|end|>")
    return list(TOKENIZER.encode(text[:start] + text[end:], add_special_tokens=False))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"answer": "E"}, "the answer is 'E', not A to D"), ({"choice_B": None}, "field choice_B is null")],
)
def test_broken_records(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        items(tmp_path, [v2_record(**changes)])
