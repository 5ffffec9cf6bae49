"""The shape of a model that is loaded."""

from __future__ import annotations

from typing import Any

from hillinfer.simulation.shape import Shape


def shape_of(model: Any, name: str) -> Shape:
    """Of a model of transformers, in the number format it computes in."""
    config = model.config.get_text_config(decoder=True)
    heads = config.num_attention_heads
    intermediate = getattr(config, "intermediate_size", None) or config.ffn_dim
    return Shape(
        name,
        config.num_hidden_layers,
        heads,
        getattr(config, "num_key_value_heads", None) or heads,
        getattr(config, "head_dim", None) or config.hidden_size // heads,
        config.hidden_size,
        intermediate,
        config.vocab_size,
        3 if hasattr(config, "intermediate_size") else 2,
        config.max_position_embeddings,
        model.dtype.itemsize,
        model.dtype.itemsize,
    )
