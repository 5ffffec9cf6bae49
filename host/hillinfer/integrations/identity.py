"""Who a transformers model is, as far as a head profile must know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from hillinfer.profiling.identity import SAMPLE, ModelIdentity


def identify(model: Any) -> ModelIdentity:
    """The model's identity: its name is the last part of where it was loaded from."""
    config = model.config.get_text_config(decoder=True)
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    layers = DynamicCache(config=model.config).layers
    return ModelIdentity(
        name=Path(str(getattr(model.config, "_name_or_path", "") or type(model).__name__)).name,
        kind=str(config.model_type),
        layers=tuple(index for index, layer in enumerate(layers) if type(layer) is DynamicLayer),
        kv_heads=kv_heads,
        group=heads // kv_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        sample=_sample(model),
    )


def _sample(model: Any) -> tuple[float, ...]:
    """Weights of the input embedding, spread over it: a part of the model that is left alone by most quantisation."""
    weight: torch.Tensor = model.get_input_embeddings().weight.detach().flatten()
    if not weight.dtype.is_floating_point:
        return ()
    places = torch.linspace(0, len(weight) - 1, SAMPLE, dtype=torch.float64).long().to(weight.device)
    return tuple(float(f"{number:.5g}") for number in weight[places].float().cpu().tolist())
