"""Foretelling a layer's query from the input of the layer before it, for policies that read ahead.

Neighbouring layers' inputs are much alike: layer i's query weights, applied to what layer i − 1's attention is given,
make a good guess at layer i's query while layer i − 1 still has all of its work before it. Works for models whose
attention has ``q_proj`` and is handed rotary ``position_embeddings``: the Llama family and what is built like it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol

import torch
from transformers import PreTrainedModel

from hillinfer.errors import ModelError


class Owner(Protocol):
    """A cache that makes use of foretold queries."""

    def foretell(self, layer: int, query: torch.Tensor, scaling: float) -> None:
        """``layer`` of the engine is likely to have the query [B, H·G, 1, d] in this step."""


class Foresight:
    """Hooks on a model's attention, for as long as this is open: a context, and gone with its owner at the latest.

    model    a causal language model
    layers   the model's layers to foretell, each with its number in the engine
    owner    the cache, told of each query in steps of one token; passes of the model with another cache are ignored

    Raises ModelError for a model whose attention is built otherwise.
    """

    def __init__(self, model: PreTrainedModel, layers: Mapping[int, int], owner: Owner) -> None:
        attention = _attention_by_layer(model)
        self._layers = dict(layers)
        self._owner: Callable[[], Owner | None] = weakref.ref(owner)
        self._attention = {layer: attention[layer] for layer in layers}
        self._rotate = {layer: _rotary_of(module) for layer, module in self._attention.items()}
        self._rotary: Any = None  # of this pass, as full-attention layers have it: sliding ones may turn otherwise
        before = sorted({0} | set(layers) | {layer - 1 for layer in layers if layer})
        self._hooks = [
            attention[layer].register_forward_pre_hook(self._hook(layer), with_kwargs=True) for layer in before
        ]
        self._finalizer = weakref.finalize(owner, self.close)

    def close(self) -> None:
        """Take the hooks off the model. May be called twice."""
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook.remove()

    def __enter__(self) -> Foresight:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _hook(self, layer: int) -> Callable[..., None]:
        def before(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            owner = self._owner()
            used: object = kwargs.get("cache", kwargs.get("past_key_values"))
            if owner is None or used is not owner:
                return
            hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
            if layer == 0:
                self._rotary = None
            if layer in self._layers:
                self._rotary = kwargs.get("position_embeddings")
            if layer + 1 in self._layers and self._rotary is not None and hidden.shape[1] == 1:
                owner.foretell(self._layers[layer + 1], *self._query(layer + 1, hidden))

        return before

    def _query(self, layer: int, hidden: torch.Tensor) -> tuple[torch.Tensor, float]:
        """What a layer would ask of the input [B, 1, D] of another: the query [B, H·G, 1, d], and its scaling."""
        module = self._attention[layer]
        query = module.q_proj(hidden).view(*hidden.shape[:2], -1, module.head_dim).transpose(1, 2)
        if getattr(module, "q_norm", None) is not None:
            query = module.q_norm(query)
        return self._rotate[layer](query, query, *self._rotary)[0], module.scaling


def _attention_by_layer(model: PreTrainedModel) -> dict[int, Any]:
    """The attention module of every layer; ModelError where they are not built as expected."""
    modules: list[Any] = list(model.modules())
    found = {
        module.layer_idx: module
        for module in modules
        if isinstance(getattr(module, "layer_idx", None), int) and hasattr(module, "q_proj")
    }
    layers = model.config.get_text_config(decoder=True).num_hidden_layers
    missing = [layer for layer in range(layers) if layer not in found]
    if missing:
        raise ModelError(
            f"{type(model).__name__} has no q_proj in layer {missing[0]}, by which a query could be foretold: "
            "use a policy that does not predict (quest, hillinfer), without lookahead"
        )
    return found


def _rotary_of(module: Any) -> Callable[..., Any]:
    """The function by which the module's own source file turns queries; it takes (q, k, cos, sin)."""
    rotate = getattr(sys.modules[type(module).__module__], "apply_rotary_pos_emb", None)
    if rotate is None or not hasattr(module, "head_dim") or not hasattr(module, "scaling"):
        raise ModelError(
            f"{type(module).__name__} is not built like Llama's attention (rotary position_embeddings), so its query "
            "cannot be foretold: use a policy that does not predict (quest, hillinfer), without lookahead"
        )
    found: Callable[..., Any] = rotate
    return found
