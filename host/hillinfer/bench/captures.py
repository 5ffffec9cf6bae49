"""Queries, keys and values as real models compute them on real text, kept in the user's cache.

Benchmarks of the cache alone need them: which tokens matter, how often the same ones do, and how tight a chunk's bounds
are cannot be made up. The text is read once, all of it; its last tokens are what a benchmark decodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.config import cache_home
from hillinfer.errors import DocumentError, ModelError
from hillinfer.models import load
from hillinfer.models.sealed import build, is_sealed, verify

_SETTINGS = "capture.json"
_PARTS = ("query", "keys", "values")
Half = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Captured:
    """One layer of a model, after rotary embedding: query [H, G, n, d], keys and values [H, n, d]; memory-mapped."""

    layer: int
    query: Half
    keys: Half
    values: Half


@dataclass(frozen=True)
class Capture:
    """A model's full-attention layers on ``tokens`` tokens of a text.

    digest   of the text's tokens
    """

    model: str
    tokens: int
    digest: str
    layers: tuple[Captured, ...]


def capture(
    model: str | None, ids_of: Callable[[object, int], torch.Tensor], tokens: int, on_progress: Callable[[str], None]
) -> Capture:
    """The capture of a model (as in generate) on a text's first ``tokens`` tokens: read back if it was made before.

    ids_of   the tokens int64 [n ≥ tokens] of the text, given a tokenizer and how many are needed

    ModelError for a model without full-attention layers, or whose saved capture has changed.
    """
    from hillinfer.integrations.prompt_record import PromptRecord
    from hillinfer.integrations.transformers import HillInferLayer

    on_progress("loading the model whose queries and keys are used")
    loaded = load(model)
    ids = ids_of(loaded.tokenizer, tokens)[:tokens]
    if len(ids) < tokens:
        raise DocumentError(f"the text has {len(ids)} tokens and the capture needs {tokens}: give a longer --text")
    digest = hashlib.sha256(ids.numpy().tobytes()).hexdigest()[:16]
    folder = cache_home() / "captures" / f"{loaded.name}-{tokens}-{digest}"

    def fill(partial: Path) -> None:
        record = PromptRecord(
            loaded.model,
            ids[None],
            on_progress=lambda done, of: on_progress(f"{loaded.name} reads {done:,} of {of:,} tokens, once"),
        )
        try:
            layers = [layer for layer in record.cache.layers if isinstance(layer, HillInferLayer)]
            for number, layer in enumerate(layers):
                chunks = list(layer.recorded())
                for part in _PARTS:
                    whole = torch.cat([getattr(chunk, part) for chunk in chunks], -2)
                    np.save(partial / f"{part}-{number}.npy", whole.half().numpy())
            settings = {"model": loaded.name, "tokens": tokens, "digest": digest, "layers": len(layers)}
            (partial / _SETTINGS).write_text(json.dumps(settings))
        finally:
            record.close()

    if not is_sealed(folder):
        build(folder, fill, source=f"{loaded.source}, {tokens} tokens of text {digest}")
    verify(folder)
    return _open(folder)


def _open(folder: Path) -> Capture:
    try:
        settings = json.loads((folder / _SETTINGS).read_text())
        layers = tuple(
            Captured(number, *(np.load(folder / f"{part}-{number}.npy", mmap_mode="r") for part in _PARTS))
            for number in range(settings["layers"])
        )
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"the capture {folder} cannot be read ({error}): delete it, and it is made anew") from error
    return Capture(settings["model"], settings["tokens"], settings["digest"], layers)
