"""How far a method's distributions are from those they are held against."""

from __future__ import annotations

import torch


def divergence(full: torch.Tensor, logprobs: torch.Tensor) -> float:
    """KL(full ‖ method) per token in nats, of log-probabilities float32 [steps, vocabulary]."""
    return float((full.exp() * (full - logprobs)).sum(-1).mean())


def share_right(logprobs: torch.Tensor, expected: torch.Tensor) -> float:
    """Share of steps whose likeliest token is the expected one, int64 [steps]."""
    return float((logprobs.argmax(-1) == expected).float().mean())
