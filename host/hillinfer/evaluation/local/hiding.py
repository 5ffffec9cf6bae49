"""Facts hidden in real text, and a sentence about them that the model is to end: what retrieval tasks are made of."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from hillinfer.documents import plain_tokens
from hillinfer.errors import DocumentError
from hillinfer.evaluation.local.form import Question, framed
from hillinfer.evaluation.local.texts import books
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
    """Stretches of real text, drawn by the seed, with room for what is hidden."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._books = books(asking.tokenizer, asking.text, max(asking.lengths))

    def draw(self, task: str, context: int, number: int) -> random.Random:
        """What everything random about one item is drawn from; numbers and tasks have nothing to do with each other."""
        return random.Random(f"{self._asking.seed}/{task}/{context}/{number}")

    def place(self, task: str, context: int, group: int) -> tuple[int, int]:
        """A book and where in it a stretch for ``context`` tokens begins."""
        drawn = self.draw(f"{task} text", context, group)
        book = drawn.randrange(len(self._books))
        return book, drawn.randrange(len(self._books[book]) - context + 1)

    def item(self, identity: str, context: int, place: tuple[int, int], hidden: Hidden) -> Item:
        """``context`` tokens in all, the answer's included."""
        form = framed(self._asking.tokenizer, hidden.question, self._asking.chat)
        facts = [plain_tokens(self._asking.tokenizer, f"\n\n{fact}\n\n") for _, fact in hidden.facts]
        fixed = len(form) + sum(map(len, facts))
        room = context - fixed
        if room <= 0:
            raise DocumentError(f"{context} tokens have no room for what is hidden ({fixed}): ask for longer --lengths")
        book, first = place
        text = self._books[book][first : first + room].tolist()
        parts, done = [form.before], 0
        stretch = context - len(form.before) - sum(map(len, facts))  # the same for every question about these facts
        for (depth, _), fact in zip(hidden.facts, facts, strict=True):
            cut = min(room, int(stretch * depth))
            parts += [text[done:cut], fact]
            done = cut
        prompt = [token for part in [*parts, text[done:], form.after] for token in part]
        return Item(
            identity,
            context,
            torch.tensor(prompt),
            torch.tensor(form.answer),
            hidden.references,
            len(form.answer),
            hidden.labels,
            text=f"{book}:{first}",
        )


def depths(limit: int | None) -> Iterator[tuple[int, float]]:
    """Groups and depths for ``limit`` items (None: two groups): all depths in turn, or as many as there are items.

    Ascending within a group: a prompt is read from where it parts from the one before it.
    """
    wanted = 2 * len(DEPTHS) if limit is None else limit
    few = (
        [DEPTHS[len(DEPTHS) * (2 * at + 1) // (2 * wanted)] for at in range(wanted)] if wanted < len(DEPTHS) else DEPTHS
    )
    for number in range(wanted):
        yield number // len(few), few[number % len(few)]


class OneAnswer(Task):
    """A task with one right answer, which what is said is to begin with."""

    retrieval: ClassVar[bool] = True

    def score(self, item: Item, said: str) -> float:
        """1 if what was said begins with the one right answer."""
        return float(said.strip().startswith(item.references[0]))

    def settled(self, item: Item, said: str) -> bool:
        """Whether what was said begins with the right answer already, or never will."""
        said, right = said.strip(), item.references[0]
        return said.startswith(right) or not right.startswith(said)


def share_named(item: Item, said: str) -> float:
    """Share of the right answers that were said, anywhere."""
    return sum(reference in said for reference in item.references) / len(item.references)
