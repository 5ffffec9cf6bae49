"""HeteroCache meets near-data scoring: the storage device says which positions a satellite is to get."""

from __future__ import annotations

import numpy as np
import torch

from hillinfer.kv.query import quantise_query
from hillinfer.kv.selection import Positions, top
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.policies.base import PerHead
from hillinfer.store.token_stream import TokenStream


def by_own_query(
    evaluator: Evaluator,
    stream: TokenStream,
    query: torch.Tensor,
    normaliser: PerHead,
    scaling: float,
    counts: dict[int, int],
    prompt: int,
) -> dict[int, Positions]:
    """The best positions among the first ``prompt`` for KV heads, ``counts`` of each, by their own queries.

    query        [H, G, 1, d] of this step
    normaliser   log-sum-exp float32 [H, G] that this step's attention left

    Keys are scored where they lie, like HillInfer's: a score is the largest over the group of (logit − normaliser).
    """
    integers = query[:, :, 0].float().cpu().numpy()
    queries = quantise_query(integers, scaling, normaliser, stream.lowest_exponent, "max").per_head()
    scores = evaluator.score(stream, [queries[head] for head in counts], lambda: None)
    return {
        head: top(np.ascontiguousarray(each[:prompt]), count)
        for (head, count), each in zip(counts.items(), scores, strict=True)
    }
