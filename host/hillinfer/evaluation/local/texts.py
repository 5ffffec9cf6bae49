"""The text that things are hidden in or that is continued: the project's own, a file, or a folder of books."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch

from hillinfer.documents import default_document, plain_tokens, read_prompt_file
from hillinfer.errors import DocumentError


def books(tokenizer: Any, path: Path | None, tokens: int) -> list[torch.Tensor]:
    """Tokens int64 [n], n ≥ ``tokens``, of each text: those of a folder (its .txt files, as PG-19 has them), or one.

    Without special tokens. DocumentError where there is none of that length.
    """
    found = _tokens(tokenizer, path)
    long = [torch.tensor(ids) for ids in found if len(ids) >= tokens]
    if not long:
        longest = max(map(len, found), default=0)
        raise DocumentError(
            f"{path or 'the text'} has no text of {tokens} tokens (the longest has {longest}): ask for shorter "
            "--lengths, or name a longer --text: a UTF-8 file, or a folder of .txt files"
        )
    return long


@functools.lru_cache(maxsize=1)
def _tokens(tokenizer: Any, path: Path | None) -> list[list[int]]:
    """Of every text; kept, because many tasks are made of the same."""
    texts = [default_document(tokenizer, tokens=1 << 30)] if path is None else read_texts(path)
    return [plain_tokens(tokenizer, text) for text in texts]


def read_texts(path: Path) -> list[str]:
    """Of a file, or of a folder's .txt files by name; DocumentError for none, an empty one, or other than UTF-8."""
    if not path.is_dir():
        return [read_prompt_file(path)]
    files = sorted(path.glob("*.txt"))
    if not files:
        raise DocumentError(f"there is no .txt file in {path}: name a text, or a folder of .txt files, with --text")
    return [read_prompt_file(file) for file in files]


def start_tokens(tokenizer: Any) -> list[int]:
    """What the tokenizer puts before a text, such as Gemma's <bos>."""
    probe = list(tokenizer("a", verbose=False).input_ids)
    return probe[: len(probe) - len(plain_tokens(tokenizer, "a"))]
