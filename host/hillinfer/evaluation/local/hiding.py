"""Facts hidden in real text, and a sentence about them that the model is to end: what retrieval tasks are made of."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from hillinfer.documents import plain_tokens
from hillinfer.errors import DocumentError
from hillinfer.evaluation.local.form import Question, framed
from hillinfer.evaluation.local.texts import books
from hillinfer.evaluation.shelf import Place, stretch
from hillinfer.evaluation.task import Asking, Item, Task

DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class Hidden:
    """Sentences with their depths (0 … 1, ascending), what is asked about them, and what is right."""

    facts: Sequence[tuple[float, str]]
    question: Question
    references: Sequence[str]
    labels: dict[str, float | str] = field(default_factory=dict)


class Haystack:
    """Stretches of real text with room for what is hidden."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        books(asking.tokenizer, asking.text, max(asking.lengths))  # raises where no text is long enough
        self._books = books(asking.tokenizer, asking.text, 1)  # by the numbers that all tasks know them by

    def draw(self, task: str, context: int, number: int) -> random.Random:
        """What everything random about one item is drawn from; numbers and tasks have nothing to do with each other."""
        return random.Random(f"{self._asking.seed}/{task}/{context}/{number}")

    def places(self, context: int, items: int) -> list[Place]:
        """A stretch of text for each item."""
        return self._asking.shelf.row(self._books, context, items, self._asking.seed)

    def item(self, identity: str, context: int, place: Place, hidden: Hidden) -> Item:
        """``context`` tokens in all, the answer's included."""
        form = framed(self._asking.tokenizer, hidden.question, self._asking.chat)
        facts = [plain_tokens(self._asking.tokenizer, f"\n\n{fact}\n\n") for _, fact in hidden.facts]
        fixed = len(form) + sum(map(len, facts))
        room = context - fixed
        if room <= 0:
            raise DocumentError(f"{context} tokens have no room for what is hidden ({fixed}): ask for longer --lengths")
        book, first = place
        text = stretch(self._books[book], first, room).tolist()
        parts, done = [form.before], 0
        whole = context - len(form.before) - sum(map(len, facts))  # depths are of text and question
        for (depth, _), fact in zip(hidden.facts, facts, strict=True):
            cut = min(room, int(whole * depth))
            parts += [text[done:cut], fact]
            done = cut
        prompt = [token for part in [*parts, text[done:], form.after] for token in part]
        return Item(
            identity,
            context,
            torch.tensor(prompt),
            torch.tensor(form.answer),
            hidden.references,
            len(form.answer) + 1,  # that an answer has ended shows in the token behind it
            hidden.labels,
            text=f"{book}:{first}",
        )


def depths(limit: int | None) -> list[float]:
    """One for each of ``limit`` items (None: ten): all in turn, or, of fewer items, some that are spread."""
    wanted = 2 * len(DEPTHS) if limit is None else limit
    if wanted < len(DEPTHS):
        return [DEPTHS[len(DEPTHS) * (2 * at + 1) // (2 * wanted)] for at in range(wanted)]
    return [DEPTHS[at % len(DEPTHS)] for at in range(wanted)]


class OneAnswer(Task):
    """A task with one right answer, which what is said is to begin with."""

    retrieval: ClassVar[bool] = True

    def score(self, item: Item, said: str) -> float:
        """1 if what was said begins with the one right answer, whole: 123456 is not 12345."""
        said, right = said.strip(), item.references[0]
        return float(said.startswith(right) and not said[len(right) :][:1].isalnum())

    def settled(self, item: Item, said: str) -> bool:
        """Whether what was said goes on after the right answer already, or is none."""
        return not item.references[0].startswith(said.strip())


def share_named(item: Item, said: str) -> float:
    """Share of the right answers that were said, anywhere."""
    return sum(reference in said for reference in item.references) / len(item.references)
