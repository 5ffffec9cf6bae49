"""How a local task asks: as a text that the model goes on with, or as a turn of a chat that it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hillinfer.documents import frame, plain_tokens
from hillinfer.errors import SettingError
from hillinfer.evaluation.local.texts import start_tokens


@dataclass(frozen=True)
class Question:
    """asked   the question; begun: the sentence that its answer ends; answer: how it goes on, from a space on

    posed   whether the question stands before the sentence where there is no chat, too: a small model is then surer of
            what it is to end
    """

    asked: str
    begun: str
    answer: str
    posed: bool = True


@dataclass(frozen=True)
class Framed:
    """Tokens before the text, after it (the question up to the answer), and of the answer."""

    before: list[int]
    after: list[int]
    answer: list[int]

    def __len__(self) -> int:
        """Of all three."""
        return len(self.before) + len(self.after) + len(self.answer)


def framed(tokenizer: Any, question: Question, chat: bool) -> Framed:
    """A question about the text before it. In a chat, text and question are the user's turn and the model's begins with
    the sentence that it is to end, as RULER has it. SettingError for a chat with a model that has no template.
    """
    if chat:
        if not getattr(tokenizer, "chat_template", None):
            raise SettingError("this model has no chat template: leave out --chat, or take a model made for chats")
        head, tail = frame(tokenizer)
        begun, answer = _split(tokenizer, question.begun, question.answer)
        return Framed(head, plain_tokens(tokenizer, f"\n\n{question.asked}") + tail + begun, answer)
    text = f"Question: {question.asked}\nAnswer: {question.begun}" if question.posed else question.begun
    begun, answer = _split(tokenizer, f"\n\n{text}", question.answer)
    return Framed(start_tokens(tokenizer), begun, answer)


def _split(tokenizer: Any, question: str, answer: str) -> tuple[list[int], list[int]]:
    """Tokens of a question and of the answer after it."""
    begun = plain_tokens(tokenizer, question)
    both = plain_tokens(tokenizer, question + answer)
    if both[: len(begun)] != begun:  # a tokenizer that joins the two: apart, then
        return begun, plain_tokens(tokenizer, answer)
    return begun, both[len(begun) :]
