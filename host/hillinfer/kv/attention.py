"""Exact attention over pieces of the context, merged by their log-sum-exp (the online softmax of FlashAttention)."""

from __future__ import annotations

import math

import torch

Partial = tuple[torch.Tensor, torch.Tensor]
"""Output [H, G, T, d] and log-sum-exp [H, G, T] of attention over a part of the context."""


def attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    *,
    causal: bool = False,
    mask: torch.Tensor | None = None,
) -> Partial:
    """Attention of a query [H, G, T, d] to keys and values [H, n, d], which are shared by a group, not repeated.

    causal   query t sees keys 0..t (T = n); otherwise every query sees every key
    mask     bool [H, n]: which keys a KV head's queries see; at least one each
    """
    heads, group, length, dim = query.shape
    bias = None
    if mask is not None:
        bias = torch.zeros(heads, 1, 1, keys.shape[1], dtype=query.dtype, device=query.device)
        bias.masked_fill_(~mask[:, None, None, :], -math.inf)
    if query.device.type != "cpu":
        return _attend_dense(query, keys, values, scaling, causal, bias)
    if causal:  # a stride of 0 over the group shares the keys without copying them
        shared = (heads, group, keys.shape[1], dim)
        q, k, v = query, keys[:, None].expand(shared), values[:, None].expand(shared)
    else:  # without order among queries, a group is just more rows of one head
        q, k, v = query.reshape(heads, 1, group * length, dim), keys[:, None], values[:, None]
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=bias, scale=scaling
    )
    return out.reshape(query.shape), lse.reshape(heads, group, length)


def _attend_dense(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    causal: bool,
    bias: torch.Tensor | None,
) -> Partial:
    """The same in plain operations, for devices without a kernel that returns the log-sum-exp."""
    logits = torch.matmul(query.float() * scaling, keys[:, None].transpose(-1, -2).float())
    if bias is not None:
        logits = logits + bias
    if causal:
        length = query.shape[2]
        later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        logits = logits.masked_fill(later, -math.inf)
    lse = logits.logsumexp(-1)
    weights = (logits - lse[..., None]).exp().to(values.dtype)
    return torch.matmul(weights, values[:, None]), lse


def attend_weighed(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of one token's query [H, G, 1, d] that also gives its weights: output [H, G, 1, d], float32 [H, G, n].

    mask   bool [H, n]: which keys a KV head's queries see; at least one each
    """
    logits = torch.matmul(query[:, :, 0].float() * scaling, keys.float().transpose(-1, -2))
    weights = logits.masked_fill_(~mask[:, None], -math.inf).softmax(-1)
    return torch.matmul(weights.to(values.dtype), values)[:, :, None], weights


def merge(parts: list[Partial]) -> Partial:
    """Attention over the union of disjoint parts of the context."""
    out, lse = parts[0]
    for other, other_lse in parts[1:]:
        # exp(other_lse) / (exp(lse) + exp(other_lse)): one look at the outputs, whatever the number of parts
        share = torch.sigmoid(other_lse - lse)
        out = torch.lerp(out.float(), other.float(), share[..., None])
        lse = torch.logaddexp(lse, other_lse)
    return out.to(parts[0][0].dtype), lse
