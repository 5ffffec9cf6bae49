"""What the paper on HeteroCache states about speed, and how we know. No number is read off a picture."""

from __future__ import annotations

from hillinfer.simulation.paper.statement import Paper, Read, Statement

PAPER = Paper(
    title="HeteroCache: A Dynamic Retrieval Approach to Heterogeneous KV Cache Compression for Long-Context LLM "
    "Inference",
    source="ACL 2026, long papers, pp. 43172–43187; arXiv 2601.13684",
)

STATEMENTS = (
    Statement(
        name="hetero-decode",
        figure="hetero-decode",
        says="up to 3 times faster decoding than the original model with a 224K context",
        low=3.0,
        high=3.0,
        unit="×",
        where="abstract",
        read=Read.abstract,
        source="ACL Anthology 2026.acl-long.1999; the lengths: tools/test_latency.py of the authors' repository",
    ),
    Statement(
        name="hetero-first-token",
        figure="hetero-first-token",
        says="the time to the first token, beside the original model's",
        where="experiments, efficiency",
        read=Read.ours,
        source="what the figure shows; no number is known to us",
    ),
    Statement(
        name="hetero-threshold",
        figure="hetero-threshold",
        says="retrieval by the drift threshold",
        where="experiments, threshold sweep",
        read=Read.ours,
        source="what the figure shows; no number is known to us",
    ),
)
