"""A number hidden in real text: does a method still find it?

The prompt is a document with a sentence about a number in it, and ends with the beginning of that sentence: what is
left to say is the number. A number, not a word, so that nothing else in the text helps to guess it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

from hillinfer.errors import DocumentError

_SAID = "The secret number of the lighthouse keeper is"
_NEEDLE = "\n\n{said} {key}. Remember: the lighthouse keeper's secret number is {key}.\n\n"
_DIGITS = 5


@dataclass(frozen=True)
class Passkey:
    """tokens int64 [1, N]: prompt and answer; the last ``answer`` of them are the number. depth: where it stands."""

    tokens: torch.Tensor
    answer: int
    depth: float


def passkey(tokenizer: Any, document: torch.Tensor, tokens: int, depth: float, seed: int) -> Passkey:
    """A passkey of ``tokens`` tokens in all; its number, drawn by ``seed``, stands at ``depth`` (0 ... 1) of them.

    document   int64 [n]: tokens of a text to hide it in
    """
    key = str(random.Random(seed).randrange(10 ** (_DIGITS - 1), 10**_DIGITS))
    needle = _tokens(tokenizer, _NEEDLE.format(said=_SAID, key=key))
    begun = _tokens(tokenizer, f"\n\n{_SAID}")
    answer = _tokens(tokenizer, f"\n\n{_SAID} {key}")[len(begun) :]
    room = tokens - len(needle) - len(begun) - len(answer)
    if not 0 < room <= len(document):
        raise DocumentError(f"a passkey of {tokens} tokens needs {room} of a document that has {len(document)}")
    cut = int(room * depth)
    parts = [document[:cut], needle, document[cut:room], begun, answer]
    return Passkey(torch.cat([torch.as_tensor(part) for part in parts])[None], len(answer), depth)


def _tokens(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False, verbose=False).input_ids)
