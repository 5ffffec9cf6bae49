"""Keys and queries of the default model on its built-in document, quantised as the product does it.

    python -m tb.real_keys FILE.npz

Arrays by layer, reduce and key format: what qk_score/test_real_keys.py reads. It runs in a process of its own, so that
simulations need not load torch.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from hillinfer.documents import default_document
from hillinfer.errors import HillInferError
from hillinfer.kv.keys import cast_keys
from hillinfer.kv.query import quantise_query
from hillinfer.models import load

TOKENS = 600
LAYERS = (0, 9, 19, 29)
_NAME = "record"


def record(tokens: int, layers: tuple[int, ...]) -> dict[int, tuple[torch.Tensor, torch.Tensor, float]]:
    """By layer: the last token's queries [H·G, d], all tokens' keys [H, n, d], and the softmax scale."""
    recorded = {}

    def attention(module: Any, query: Any, key: Any, value: Any, mask: Any, **options: Any) -> Any:
        if module.layer_idx in layers:
            recorded[module.layer_idx] = (query[0, :, -1].clone(), key[0].clone(), options["scaling"])
        return sdpa_attention_forward(module, query, key, value, mask, **options)

    AttentionInterface.register(_NAME, attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    loaded = load()
    loaded.model.set_attn_implementation(_NAME)
    text = default_document(loaded.tokenizer, tokens + 200)
    ids = loaded.tokenizer(text, return_tensors="pt", verbose=False)["input_ids"][:, :tokens]
    with torch.inference_mode():
        loaded.model(ids)
    return recorded


def quantise(query: torch.Tensor, keys: torch.Tensor, scaling: float) -> dict[str, np.ndarray[Any, Any]]:
    """One layer's arrays: ``max/m``, … of the query, ``fp16/keys``, ``int8/exponents``, … of the keys."""
    heads, _, d = keys.shape
    grouped = query.reshape(heads, -1, d)
    logits = scaling * grouped @ keys.transpose(1, 2)
    normaliser = torch.logsumexp(logits, -1).numpy()
    arrays: dict[str, np.ndarray[Any, Any]] = {"fp16/keys": keys.transpose(0, 1).half().numpy().view(np.uint16)}
    for key_format in ("int8", "int4"):
        cast = cast_keys(keys, key_format)
        arrays |= {f"{key_format}/keys": cast.integers, f"{key_format}/exponents": cast.exponents}
        for reduce in ("max", "sum"):
            quantised = quantise_query(
                grouped.numpy(), scaling, normaliser if reduce == "max" else None, cast.exponents.min(0), reduce
            )
            arrays |= {f"{key_format}/{reduce}/{name}": getattr(quantised, name) for name in ("q8", "m", "r", "o")}
    return arrays


def main() -> None:
    """Write the file named on the command line; exits with one line when the model can't be had."""
    path = Path(sys.argv[1])
    try:
        recorded = record(TOKENS, LAYERS)
    except HillInferError as error:
        sys.exit(str(error))
    arrays = {f"{layer}/{name}": array for layer in LAYERS for name, array in quantise(*recorded[layer]).items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, **arrays)  # type: ignore[arg-type]
    partial.replace(path)


if __name__ == "__main__":
    main()
