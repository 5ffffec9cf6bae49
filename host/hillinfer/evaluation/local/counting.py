"""The most frequent words of a long list, as RULER has them: nothing to look up, the whole list has to be weighed."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch

from hillinfer.documents import plain_tokens
from hillinfer.errors import DocumentError
from hillinfer.evaluation.local import hiding
from hillinfer.evaluation.local.form import Question, framed
from hillinfer.evaluation.local.several import RULER, listed
from hillinfer.evaluation.local.texts import books
from hillinfer.evaluation.task import Asking, Item, Task

ASKED = 3
_ITEMS = 4
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_WORDS = [first + second for first in _SYLLABLES for second in _SYLLABLES]


class _Counting(Task):
    """A list of words that mean nothing, in random order; the same number of tokens whatever the words."""

    def items(self, asking: Asking) -> Iterator[Item]:
        text = books(asking.tokenizer, asking.text, max(asking.lengths))[0].tolist()
        for context in asking.lengths:
            for number in range(asking.limit or _ITEMS):
                drawn = random.Random(f"{asking.seed}/{self.name}/{context}/{number}")
                words = [
                    "".join(parts) for parts in drawn.sample([(a, b) for a in _SYLLABLES for b in _SYLLABLES], 2000)
                ]
                most = words[:ASKED]
                asked = "What are the three most frequent words of the list?"
                said = "The three most frequent words of the list are"
                form = framed(asking.tokenizer, Question(asked, said, f" {listed(most)}", posed=False), asking.chat)
                head = plain_tokens(asking.tokenizer, "\n\nA list of words:")
                room = context - len(head) - len(form)
                found = self._list(asking, words, room)
                drawn.shuffle(found)
                body = [token for word in found for token in word]
                filler = text[: room - len(body)]  # a few tokens of text, so that the length is exact
                prompt = [*form.before, *filler, *head, *body, *form.after]
                yield Item(
                    f"{context}/{number}",
                    context,
                    torch.tensor(prompt),
                    torch.tensor(form.answer),
                    most,
                    len(form.answer),
                )

    def _list(self, asking: Asking, words: Sequence[str], room: int) -> list[list[int]]:
        """Tokens of as many words, each as often as ``counts`` says, as there is room for."""
        tokens: dict[str, list[int]] = {}
        total = room  # at least a token each
        while True:
            counts = self.counts(total)
            if len(counts) <= ASKED or counts[ASKED - 1] <= counts[ASKED]:
                raise DocumentError(f"{max(room, 0)} tokens are too few for a list of words: ask for longer --lengths")
            for word, _ in zip(words, counts, strict=False):
                tokens[word] = tokens.get(word) or plain_tokens(asking.tokenizer, f" {word}")
            found = [tokens[word] for word, count in zip(words, counts, strict=False) for _ in range(count)]
            over = sum(map(len, found)) - room
            if over <= 0:
                return found
            total -= max(1, over // 5)  # no word has more tokens

    @abstractmethod
    def counts(self, total: int) -> list[int]:
        """How often each word is in a list of about ``total``, falling."""

    def score(self, item: Item, said: str) -> float:
        return hiding.share_named(item, said)


class CommonWords(_Counting):
    """Three words stand out, all others are equally rare."""

    name: ClassVar[str] = "common-words"
    source: ClassVar[str] = f"{RULER}, common words"

    def counts(self, total: int) -> list[int]:
        return [total // 10] * ASKED + [3] * ((total - total // 10 * ASKED) // 3)


class FrequentWords(_Counting):
    """Frequencies fall with the square of the rank."""

    name: ClassVar[str] = "frequent-words"
    source: ClassVar[str] = f"{RULER}, frequent words"

    def counts(self, total: int) -> list[int]:
        most = total * 6 / torch.pi**2
        return [count for rank in range(1, len(_WORDS) + 1) if (count := round(most / rank**2))]
