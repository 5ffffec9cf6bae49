"""What a step of the model costs without any attention: its weights, and the programs around them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel

from hillinfer.simulation.measuring.probe import Probe

_NAME = "hillinfer_no_attention"


def _nothing(
    module: torch.nn.Module,  # noqa: ARG001  # transformers' signature
    query: torch.Tensor,
    *_: Any,
    **__: Any,
) -> tuple[torch.Tensor, None]:
    return query.transpose(1, 2), None


class ModelProbe(Probe):
    """floor: a step with attention left out; bare: one without layers; linear: the layers' products of one row, one
    after the other; head: the output projection's."""

    label = "the model without attention"

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        AttentionInterface.register(_NAME, _nothing)
        self._model, self._token = model, torch.tensor([[1]])
        decoder: Any = model.base_model
        self.layers = len(decoder.layers)
        self._bodies = [part for part in decoder.modules() if isinstance(part, torch.nn.Linear)]
        self._head: torch.nn.Linear = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        self.weight_bytes: int = sum(part.weight.nbytes for part in (*self._bodies, self._head))
        self._rows = {size: torch.randn(1, 1, size).to(model.dtype) for size in {p.in_features for p in self._bodies}}
        self._hidden = torch.randn(1, 1, self._head.in_features).to(model.dtype)

    def prepare(self) -> None:
        self._model.set_attn_implementation(_NAME)

    def step(self) -> None:
        with torch.inference_mode():
            self.take("floor", self._run)
            self.take("linear", self._products)
            self.take("head", lambda: self._head(self._hidden))
            decoder = self._model.base_model
            layers, decoder.layers = decoder.layers, torch.nn.ModuleList()
            try:
                self.take("bare", self._run)
            finally:
                decoder.layers = layers

    def _run(self) -> None:
        self._model(self._token, use_cache=False)

    def _products(self) -> None:
        for part in self._bodies:
            part(self._rows[part.in_features])

    # ---- what follows

    @property
    def linear_rate(self) -> float:
        """Bytes of weights per second."""
        return self.weight_bytes / (self.median("linear") + self.median("head"))

    @property
    def per_step(self) -> float:
        """Seconds outside all layers, less the head's product."""
        return max(0.0, self.median("bare") - self.median("head"))

    @property
    def per_layer(self) -> float:
        """Seconds of a layer, less its products."""
        layers = self.median("floor") - self.median("bare") - self.median("linear")
        return max(0.0, layers / self.layers)
