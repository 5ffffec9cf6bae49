"""Text to tokens as the harness's own models do it, so that figures can be held beside theirs."""

from __future__ import annotations

from typing import Any


def encode(tokenizer: Any, text: str) -> list[int]:
    """Tokens with what the tokenizer puts before a text, unless that is written there."""
    start = tokenizer.bos_token
    written = bool(start) and text.startswith(start)
    return list(tokenizer.encode(text, add_special_tokens=False) if written else tokenizer.encode(text))


def encode_pair(tokenizer: Any, context: str, continuation: str) -> tuple[list[int], list[int]]:
    """Tokens of a context and of what comes after it, cut where the context's own tokens end.

    Spaces at the end of the context belong to the continuation, whose first token they are part of. An empty context
    is the token that starts a text, or ends one where there is no such token.
    """
    if context == "":
        after = list(tokenizer.encode(continuation, add_special_tokens=False))
        first = prefix_token(tokenizer)
        return ([first], after) if after[:1] != [first] else (after[:1], after[1:])
    body = context.rstrip()
    continuation = context[len(body) :] + continuation
    before = encode(tokenizer, body)
    return before, encode(tokenizer, body + continuation)[len(before) :]


def prefix_token(tokenizer: Any) -> int:
    """What an empty context is."""
    start = tokenizer.bos_token_id
    return int(tokenizer.eos_token_id if start is None else start)
