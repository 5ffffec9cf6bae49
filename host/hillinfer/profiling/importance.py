"""Which positions matter to a head: pooled softmax rows, and the exact top of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

Positions = npt.NDArray[np.int64]


def softmax_rows(query: torch.Tensor, keys: torch.Tensor, scaling: float) -> torch.Tensor:
    """Attention float32 [H, G, n] of a query [H, G, d] to keys [H, n, d], which a group shares; each row sums to 1."""
    logits = torch.matmul(query.float() * scaling, keys.transpose(-1, -2).float())
    return logits.softmax(-1)


def pooled(rows: torch.Tensor, kernel: int) -> torch.Tensor:
    """Rows [..., n] averaged over ``kernel`` positions (odd) round each; beyond the ends there are zeros."""
    count = rows.shape[-1]
    padded = torch.nn.functional.pad(rows, (kernel // 2, kernel // 2))
    total = padded[..., :count].clone()
    for shift in range(1, kernel):  # a third of avg_pool1d's time on a CPU
        total += padded[..., shift : shift + count]
    return total / kernel


def top_mask(scores: torch.Tensor, count: int) -> torch.Tensor:
    """bool [..., n]: the min(count, n) highest of scores [..., n]; ties go to the newest position, as everywhere here.

    ``torch.topk`` alone would not do: which of equal values it takes is not said.
    """
    if count >= scores.shape[-1]:
        return torch.ones_like(scores, dtype=torch.bool)
    if count <= 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    least = scores.topk(count, sorted=True).values[..., -1:]
    above, equal = scores > least, scores == least
    wanted = count - above.sum(-1, keepdim=True)
    newer_or_same = equal.flip(-1).cumsum(-1).flip(-1)
    return above | (equal & (newer_or_same <= wanted))


def top_positions(scores: torch.Tensor, count: int) -> Positions:
    """int64 [min(count, n)], ascending: where the highest of scores [n] are; ties as in ``top_mask``."""
    return top_mask(scores, count).nonzero()[:, 0].cpu().numpy()
