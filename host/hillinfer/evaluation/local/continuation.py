"""Perplexity on long text: how likely a text's own continuation is, after 4k or 8k tokens of it."""

from __future__ import annotations

from collections.abc import Iterator
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
        wanted = asking.limit or _PASSAGES
        each = -(-wanted // len(found))
        for context in asking.lengths:
            if context <= len(start) + _STEPS:
                raise DocumentError(f"{context} tokens are too few for {_STEPS} after a text: ask for longer --lengths")
            for number in range(wanted):
                window = passages(found[number % len(found)], context - len(start), each)[number // len(found)]
                tokens = torch.cat([start, window[0]])
                yield Item(f"{context}/{number}", context, tokens[:-_STEPS], tokens[-_STEPS:])

    def score(self, item: Item, said: str) -> float:
        raise NotImplementedError("nothing is said about a text")
