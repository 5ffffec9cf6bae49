"""Perplexity on long text: how likely a text's own continuation is, after 4k or 8k tokens of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar

import torch

from hillinfer.bench.texts import passages
from hillinfer.errors import DocumentError
from hillinfer.evaluation.local.texts import books, start_tokens
from hillinfer.evaluation.task import Asking, Item, Task

_STEPS = 64
_PASSAGES = 4


class Text(Task):
    """The last 64 tokens of passages of real text, teacher-forced: perplexity is e to the NLL."""

    name: ClassVar[str] = "text"
    source: ClassVar[str] = "perplexity on long text, as on PG-19 (Rae et al., arXiv 1911.05507)"

    def items(self, asking: Asking) -> Iterator[Item]:
        start = torch.tensor(start_tokens(asking.tokenizer), dtype=torch.int64)
        found = books(asking.tokenizer, asking.text, max(asking.lengths) - len(start))
        for context in asking.lengths:
            if context <= len(start) + _STEPS:
                raise DocumentError(f"{context} tokens are too few for {_STEPS} after a text: ask for longer --lengths")
            for number, window in enumerate(_apart(found, context - len(start), asking.limit or _PASSAGES)):
                tokens = torch.cat([start, window])
                yield Item(f"{context}/{number}", context, tokens[:-_STEPS], tokens[-_STEPS:])

    def score(self, item: Item, said: str) -> float:
        raise NotImplementedError("nothing is said about a text")


def _apart(books: Sequence[torch.Tensor], length: int, most: int) -> list[torch.Tensor]:
    """Windows int64 [length], ``most`` at most: a text in turn, and none overlaps another."""
    room = [len(book) // length for book in books]
    rounds = next((each for each in range(1, most) if sum(min(each, has) for has in room) >= most), most)
    windows = [
        [each[0] for each in passages(book, length, min(rounds, has))] for book, has in zip(books, room, strict=True)
    ]
    return [window for one in zip_longest(*windows) for window in one if window is not None][:most]
