"""Windows of a text."""

from __future__ import annotations

import torch


def passages(tokens: torch.Tensor, length: int, count: int) -> list[torch.Tensor]:
    """``count`` windows [1, length] spread over a text's tokens [n]."""
    last = len(tokens) - length
    starts = [last * i // max(1, count - 1) for i in range(count)]
    return [tokens[None, start : start + length] for start in starts]
