"""What a model and its KV cache take."""

from __future__ import annotations

from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.paper.figure import Figure, Row
from hillinfer.simulation.paper.statements import ALL
from hillinfer.simulation.shape import named

_TOKENS, _BATCH = 4096, 8


def memory(hardware: Hardware) -> Figure:
    """Qwen-7B with 4K tokens and batch 8: arithmetic on the shape."""
    shape = named("qwen-7b")
    kv = _TOKENS * _BATCH * shape.token_bytes
    weights = shape.weights + shape.head_weights
    rows = [
        Row(
            "weights and KV cache of Qwen-7B, FP16",
            (weights + kv) / 1e9,
            "GB",
            ALL["memory"],
            "the paper rounds, and may mean GiB; bytes follow from the model's configuration",
        ),
        Row("of them the KV cache", kv / 1e9, "GB"),
    ]
    if hardware.gpu is not None:
        rows.append(Row("memory of the GPU", hardware.gpu.memory / 1e9, "GB", why=hardware.gpu.memory.source))
    return Figure("memory", "What a long context takes", rows)
