"""Local tasks in the chat template: the same facts and answers, to the same length, in the user's turn."""

from __future__ import annotations

import pytest

from hillinfer.documents import frame
from hillinfer.errors import SettingError
from hillinfer.evaluation import registry
from hillinfer.evaluation.task import Asking, Item
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ASKING = [name for name in registry.local_names() if name != "text"]


def items(task: str, chat: bool) -> list[Item]:
    return list(registry.find(task)().items(Asking(TOKENIZER, [1500], 3, chat=chat)))


@pytest.mark.parametrize("task", ASKING)
def test_the_user_asks_and_the_model_has_begun_to_answer(task: str) -> None:
    head, tail = frame(TOKENIZER)
    for item, plain in zip(items(task, True), items(task, False), strict=True):
        assert (item.identity, item.references, item.labels) == (plain.identity, plain.references, plain.labels)
        assert len(item.prompt) + len(item.answer) == item.context == 1500
        tokens = item.prompt.tolist()
        assert tokens[: len(head)] == head
        end = next(at for at in range(len(tokens), 0, -1) if tokens[at : at + len(tail)] == tail)
        user, begun = TOKENIZER.decode(tokens[len(head) : end]), TOKENIZER.decode(tokens[end + len(tail) :])
        question = user[user.rindex("\n\n") + 2 :]
        assert question.endswith("?")
        assert not question.startswith("Question")
        assert TOKENIZER.decode(plain.prompt).endswith(begun)
        assert begun.startswith("The ")
        assert TOKENIZER.decode(item.answer) == TOKENIZER.decode(plain.answer)


@pytest.mark.parametrize("task", ASKING)
def test_a_model_without_a_template_is_refused(task: str) -> None:
    bare = tiny_tokenizer()
    bare.chat_template = None
    with pytest.raises(SettingError, match="no chat template: leave out --chat"):
        list(registry.find(task)().items(Asking(bare, [1500], 1, chat=True)))


def test_a_text_is_no_question() -> None:
    assert [item.prompt.tolist() for item in items("text", True)] == [
        item.prompt.tolist() for item in items("text", False)
    ]
