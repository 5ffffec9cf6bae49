"""One fact in a long text: a number (passkey), or a thing (needle in a haystack)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from hillinfer.evaluation.local import hiding, words
from hillinfer.evaluation.local.form import Question
from hillinfer.evaluation.local.hiding import Haystack, Hidden, OneAnswer
from hillinfer.evaluation.task import Asking, Item


class _Single(OneAnswer):
    """One fact per prompt, each in a text of its own, at every depth."""

    def items(self, asking: Asking) -> Iterator[Item]:
        haystack = Haystack(asking)
        depths = hiding.depths(asking.limit)
        for context in asking.lengths:
            places = haystack.places(context, len(depths))
            for number, (place, depth) in enumerate(zip(places, depths, strict=True)):
                hidden = self.hidden(haystack.draw(self.name, context, number), depth)
                yield haystack.item(f"{context}/{number}/{depth:g}", context, place, hidden)

    @abstractmethod
    def hidden(self, drawn: random.Random, depth: float) -> Hidden:
        """The fact and the question about it."""


class Passkey(_Single):
    """A number, not a word, so that nothing else in the text helps to guess it."""

    name: ClassVar[str] = "passkey"
    source: ClassVar[str] = "passkey retrieval (Mohtashami and Jaggi, arXiv 2305.16300)"

    def hidden(self, drawn: random.Random, depth: float) -> Hidden:
        key = str(drawn.randrange(10_000, 100_000))
        said = "The secret number of the lighthouse keeper is"
        fact = f"{said} {key}. Remember: the lighthouse keeper's secret number is {key}."
        question = Question("What is the secret number of the lighthouse keeper?", said, f" {key}", posed=False)
        return Hidden([(depth, fact)], question, [key], {"depth": depth})


class Needle(_Single):
    """A sentence that has nothing to do with the text; the picture is lengths × depths."""

    name: ClassVar[str] = "needle"
    source: ClassVar[str] = "needle in a haystack (Kamradt 2023), depths × lengths"

    def hidden(self, drawn: random.Random, depth: float) -> Hidden:
        place, thing = drawn.choice(words.PLACES), drawn.choice(words.THINGS)
        said = f"The mayor of {place} hid the treasure under the"
        question = Question(f"Where did the mayor of {place} hide the treasure?", said, f" {thing}", posed=False)
        return Hidden([(depth, f"{said} {thing}.")], question, [thing], {"depth": depth})
