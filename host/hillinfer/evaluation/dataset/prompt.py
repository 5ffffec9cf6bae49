"""From a data set's text to the model's tokens, cut in the middle where it is too long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hillinfer.documents import frame, plain_tokens
from hillinfer.errors import SettingError


@dataclass(frozen=True)
class Fitted:
    """A prompt that fits.

    tokens  int64 [n]
    cut     tokens left out of its middle
    form    "chat" in the model's chat template, "plain" without
    """

    tokens: torch.Tensor
    cut: int
    form: str


def fit(tokenizer: Any, text: str, room: int, chat: bool) -> Fitted:
    """At most ``room`` tokens: the first and last half of what the text may have, in the chat template if ``chat``.

    A model without a chat template gets the plain text. Data sets say which half goes first: ⌊room/2⌋ tokens of the
    beginning, as many of the end.
    """
    head, tail = frame(tokenizer, chat)
    body, half = plain_tokens(tokenizer, text), (room - len(head) - len(tail)) // 2
    if half < 1:
        raise SettingError(f"{max(room, 0)} tokens have no room for a prompt: ask for a longer context with --lengths")
    cut = max(0, len(body) - 2 * half) if len(body) > room - len(head) - len(tail) else 0
    if cut:
        body = body[:half] + body[-half:]
    tokens = torch.tensor(head + body + tail, dtype=torch.int64)
    return Fitted(tokens, cut, "chat" if tail else "plain")


def answer_tokens(tokenizer: Any, prompt: str, answer: str, chat: bool, most: int) -> torch.Tensor:
    """int64 [1 … most]: a right answer as it would go on after the prompt, its first tokens if it is longer.

    After a letter or a colon a space comes first; in a chat, after a line end or Chinese none does.
    """
    chat = chat and bool(getattr(tokenizer, "chat_template", None))
    spaced = not chat and prompt[-1:].isascii() and not prompt[-1:].isspace()
    ids = plain_tokens(tokenizer, (" " if spaced else "") + answer)
    return torch.tensor(ids[:most], dtype=torch.int64)
