"""transformers ≥ 5: a cache and an attention function. The only module that knows transformers' caches and models.

    cache = HillInferCache(model, alpha=0.1, hot_bytes="20%")
    model.generate(**inputs, cache=cache)          # ``past_key_values=cache`` before transformers 5.24

How the two meet: a model's attention calls ``cache.update(k, v, layer)`` and hands what it returns to the attention
function. Here ``update`` returns the new keys themselves, marked with the layer that is to serve them, and the
attention function, which sees the query too, lets that layer attend. Unmarked keys (other caches, sliding-window
layers) get the stock attention, so that a model set to ``hillinfer`` still works with transformers' own caches.

A step that fails halfway (a full disk, Ctrl-C) leaves some layers with a token that others lack. Such a cache refuses
to go on until ``reset``: an error is better than a wrong token.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from hillinfer.config import Budget, StoreSettings
from hillinfer.csd.contract import Counters
from hillinfer.errors import HillInferError, ModelError, SettingError
from hillinfer.integrations.identity import identify
from hillinfer.integrations.predict import Foresight
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.opening import check_served, open_engine
from hillinfer.pipeline.recording import Chunk, RecordingEngine
from hillinfer.pipeline.trace import Trace
from hillinfer.policies import HillInfer, Policy
from hillinfer.policies.base import SelectingPolicy
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.report import Tiers

NAME = "hillinfer"
_MARK = "_hillinfer_layer"
_LOOK_AHEAD = 256  # tokens between two looks at budgets and disk, where nobody said how many to expect
_MIN_REGION = 1 << 20  # tokens: address space of a sparse file, not memory
_UNSUPPORTED = ("softcap", "s_aux", "position_bias")  # arguments that change what attention computes


@dataclass(frozen=True)
class CacheStats:
    """What a cache did so far; the fields of ``hillinfer.report.Report`` of the same names."""

    tiers: Tiers
    hot_hit_rate: float | None
    moved_fraction: float | None
    cold_read_bytes: int
    device_scan_bytes: int
    dropped_tokens: float = 0.0
    device: str | None = None
    device_launches: int = 0
    device_seconds: float = 0.0
    device_fallback: str | None = None
    scoring_copy: str | None = None
    host_share: float | None = None
    balance_error: float | None = None
    lookahead_hit_rate: float | None = None
    lookahead_rows: int = 0
    events: dict[str, int] = field(default_factory=dict)


class HillInferCache(Cache):
    """A KV cache in three tiers, for one call of ``generate`` (or a conversation of several).

    model           a causal language model; its attention is switched to "hillinfer"
    policy          which tokens are attended, and kept, of any kind; None: ``HillInfer(alpha=alpha)``
    hot_bytes       DRAM budget of the hot pool: bytes, "2GiB", or a share of the whole KV ("20%")
    device_bytes    budget of the newest tokens on the compute device; None: 128 tokens per layer and sequence
    cold_dir        folder of the cold files (mode 0600, without a name, gone with the process); None: the cache folder
    device          the storage device that owns the cold pool: "software", "rtl", "xrt:0", … (csd/names.py)
    xclbin          the kernel's image, for xrt and pynq devices
    trace           record what ran when, see ``trace``
    store           these six as one object, instead, and what else can be set about the device
    prompt_length   tokens of the prompt, padding included: while fewer are cached, attention is exact. Needed only when
                    a prompt is fed in chunks of which one is a single token, which looks like decoding otherwise

    Raises ModelError for a model it cannot serve, SettingError for settings out of range, ColdPoolError for a cold
    folder that cannot be used. ``close`` frees everything; a cache that is dropped or a process that dies leaves
    nothing behind either.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        policy: Policy | None = None,
        *,
        alpha: float | None = None,
        hot_bytes: Budget | str | int | None = None,
        device_bytes: Budget | str | int | None = None,
        cold_dir: Path | str | None = None,
        device: str | None = None,
        xclbin: Path | str | None = None,
        trace: bool = False,
        store: StoreSettings | None = None,
        prompt_length: int = 0,
    ) -> None:
        if policy is not None and alpha is not None:
            raise SettingError("give alpha, or a policy that has its own: not both")
        if policy is None:
            policy = HillInfer() if alpha is None else HillInfer(alpha=alpha)
        check_served(policy)
        given = (hot_bytes, device_bytes, cold_dir, device, xclbin, trace or None)
        if store is not None and any(value is not None for value in given):
            fields = "hot_bytes, device_bytes, cold_dir, device, xclbin, trace"
            raise SettingError(f"give store, or its fields ({fields}): not both")
        if store is None:
            store = StoreSettings(
                hot_bytes=Budget.parse(hot_bytes if hot_bytes is not None else "20%"),
                device_bytes=Budget.parse(device_bytes) if device_bytes is not None else None,
                cold_dir=Path(cold_dir) if cold_dir is not None else None,
                device=device or "software",
                xclbin=Path(xclbin) if xclbin is not None else None,
                trace=trace,
            )
        _check_model(model)
        self._config = model.config
        config = model.config.get_text_config(decoder=True)
        layers: list[Any] = list(DynamicCache(config=model.config).layers)
        full = [i for i, layer in enumerate(layers) if type(layer) is DynamicLayer]
        if not full:
            raise ModelError(
                f"{_name(model)} has no full-attention layer (its layers all have a window or a state of fixed size): "
                "its cache does not grow, use it with transformers' DynamicCache"
            )
        self._geometry = geometry_of(model, len(full))
        self._max_tokens = max(getattr(config, "max_position_embeddings", 0) or 0, _MIN_REGION)
        policy = policy.for_model(identify(model))
        self._policy, self._store, self._model_device = policy, store, model.device
        self._engine: Engine | None = None
        self._expected = 0
        self._closed = False
        self._failure: BaseException | None = None
        self._history: torch.Tensor | None = None
        self.prompt_length = prompt_length
        for engine_layer, index in enumerate(full):
            layers[index] = HillInferLayer(self, engine_layer)
        super().__init__(layers=layers)
        self._full = full
        self._foresight: Foresight | None = None
        predicts = isinstance(policy, IndexingPolicy) and policy.predicts
        if predicts or (store.lookahead and isinstance(policy, SelectingPolicy)):
            self._foresight = Foresight(model, {index: layer for layer, index in enumerate(full)}, self)
        model.set_attn_implementation(NAME)

    def expect(self, total_tokens: int, sequences: int = 1) -> None:
        """Check budgets, memory and disk for ``total_tokens`` per sequence before anything is computed."""
        self.engine(sequences, total_tokens).expect(total_tokens)
        self._expected = total_tokens

    def engine(self, sequences: int, expected: int = 0) -> Engine:
        """The engine for a batch of ``sequences``, made when first needed, with ``expected`` tokens in each."""
        if self._closed:
            raise SettingError("this HillInferCache is closed: make a new one")
        if self._failure is not None:
            raise HillInferError(
                "an earlier step with this cache did not finish, so its layers hold different tokens: "
                f"call reset(), or make a new one (it ended with {type(self._failure).__name__}: {self._failure})"
            )
        if self._engine is None:
            with torch.inference_mode(False):  # its tensors outlive the caller's mode, whichever that is
                self._engine = open_engine(
                    self._geometry,
                    self._policy,
                    self._store,
                    sequences=sequences,
                    max_tokens=self._max_tokens,
                    device=self._model_device,
                    expected=expected,
                )
        if self._engine.sequences != sequences:
            raise SettingError(
                f"this cache holds a batch of {self._engine.sequences} and was given one of {sequences}: "
                "call reset(), or make a new one"
            )
        return self._engine

    def foretell(self, layer: int, query: torch.Tensor, scaling: float) -> None:
        """The engine's ``layer`` is likely to have the query [B, H·G, 1, d] in this step of one token each."""
        held = self.layers[self._full[layer]]
        if self._engine is None or not isinstance(held, HillInferLayer) or held.get_seq_length() < self.prompt_length:
            return
        with torch.inference_mode(False), torch.no_grad():
            for sequence in range(min(len(query), self._engine.sequences)):
                self._engine.foretell(layer, sequence, query[sequence], scaling)

    @property
    def trace(self) -> Trace:
        """What ran when, if the cache was made with ``trace=True``."""
        return self._engine.trace if self._engine is not None else Trace()

    def stats(self) -> CacheStats:
        """Bytes per tier and rates so far."""
        if self._engine is None:
            return CacheStats(Tiers(), None, None, 0, 0)
        ledger, csd = self._engine.settled_ledger(), self._engine.csd
        counters = Counters() if csd is None else csd.counters
        return CacheStats(
            copy.deepcopy(ledger.tiers),  # as they are now, whatever happens to the cache later
            ledger.hot_hit_rate,
            ledger.moved_fraction,
            ledger.cold_read_bytes,
            ledger.device_scored * counters.scan_bytes // max(1, counters.scanned_tokens),  # less what seeded the pool
            ledger.dropped_tokens,
            self._store.device if csd is not None else None,
            counters.launches,
            counters.seconds,
            counters.fallback,
            self._engine.scoring_copy,
            *self._engine.balanced,
            ledger.lookahead_hit_rate,
            ledger.ahead_rows,
            dict(ledger.events),
        )

    def reset(self) -> None:
        """Forget every token; the next one starts a new context, of any batch size."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        self.prompt_length = self._expected = 0
        self._failure = self._history = None
        for index, fresh in enumerate(DynamicCache(config=self._config).layers):
            if isinstance(self.layers[index], HillInferLayer):
                self.layers[index].reset()
            else:  # before 5.24 some layers only zero what they hold, and stay of one batch size
                self.layers[index] = fresh

    def check_whole(self) -> None:
        """Note a forward pass that was cut short: some layers have seen tokens that others have not."""
        seen = {layer.get_seq_length() for layer in self.layers if hasattr(layer, "get_seq_length")}
        if len(seen) > 1 and self._failure is None:
            self._failure = RuntimeError("a forward pass was cut short")

    def check_history(self, mask: torch.Tensor | None, slots: int, length: int, sequences: int) -> None:
        """ModelError if a mask bool [B, slots + length] hides, or shows, other cached tokens than when they came."""
        if mask is None and self._history is None:
            return
        if mask is None:
            mask = torch.ones(sequences, slots + length, dtype=torch.bool)
        mask = mask[:, : slots + length].cpu()
        before = torch.ones(sequences, slots, dtype=torch.bool) if self._history is None else self._history
        if not torch.equal(mask[:, :slots], before):
            raise ModelError(
                "the attention mask differs for tokens that are already cached: HillInfer drops padding when it comes, "
                "so a token stays visible, or stays hidden"
            )
        self._history = mask

    def close(self) -> None:
        """Free memory and remove every cold file. May be called twice."""
        self.reset()
        if self._foresight is not None:
            self._foresight.close()
        self._closed = True

    def __enter__(self) -> HillInferCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class HillInferLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # transformers' __init_subclass__
    """One full-attention layer of the cache. Length is a logical fact: slots seen, padding included."""

    is_sliding = False
    is_compileable = False
    is_croppable = False

    def __init__(self, cache: HillInferCache, layer: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._owner = weakref.ref(cache)  # no cycle: a cache that is dropped is freed at once, its files with it
        self._layer = layer
        self._slots = 0
        self._pending = 0

    @property
    def _cache(self) -> HillInferCache:
        cache = self._owner()
        assert cache is not None, "a layer lives in its cache"
        return cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to allocate: the engine grows as tokens come."""
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Mark the new keys [B, H, T, d] with this layer; they are cached once they have been attended."""
        self._check_attended()
        geometry = self._cache._geometry
        expected = (geometry.kv_heads, geometry.head_dim)
        if (key_states.shape[1], key_states.shape[3]) != expected or value_states.shape != key_states.shape:
            raise ModelError(
                f"this model's keys {tuple(key_states.shape)} and values {tuple(value_states.shape)} are not of one "
                f"shape with {geometry.kv_heads} heads of {geometry.head_dim}: such models are not supported yet"
            )
        if not key_states.dtype == value_states.dtype == geometry.dtype:
            raise ModelError(
                f"this model computes values in {value_states.dtype} though it is of {geometry.dtype}: "
                "load it in one dtype, without autocast"
            )
        if key_states.requires_grad:
            raise ModelError("HillInfer serves inference only: call the model under torch.inference_mode()")
        # Raises unless the batch is the one this cache holds, and the cache is whole.
        self._cache.engine(key_states.shape[0], expected=key_states.shape[2])
        self.is_initialized = True
        self._pending = key_states.shape[2]
        key_states = key_states.detach()  # a tensor of our own to mark
        setattr(key_states, _MARK, self)
        return key_states, value_states

    def _check_attended(self) -> None:
        pending, self._pending = self._pending, 0
        if pending and self._cache._failure is None:
            raise ModelError(
                "this model's attention did not take the keys its cache returned, so HillInfer cannot serve it. "
                "Check that model.config._attn_implementation is still 'hillinfer'"
            )

    def attend(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        mask: torch.Tensor | None,
        scaling: float,
    ) -> torch.Tensor:
        """Attention [B, T, H·G, d] of query [B, H·G, T, d]; ``mask`` bool [B, slots]: which tokens are not padding."""
        cache, length = self._cache, query.shape[2]
        if self._pending != length:
            raise ModelError("this model attends to one layer's keys more than once: such models are not supported yet")
        try:
            out = self._attend(query, keys, values, mask, scaling)
        except BaseException as error:
            cache._failure = error
            raise
        self._slots += length
        self._pending = 0
        return out.transpose(1, 2)

    def _attend(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        mask: torch.Tensor | None,
        scaling: float,
    ) -> torch.Tensor:
        cache, (batch, _, length, _) = self._cache, query.shape
        engine, total = cache.engine(batch), self._slots + length
        if self._layer == 0:
            cache.check_history(mask, self._slots, length, batch)
            if total > cache._expected:  # nobody said how long it will be: look ahead a little
                engine.expect(total)
                cache._expected = total + _LOOK_AHEAD
        valid = None if cache._history is None else cache._history[:, self._slots : total]  # in DRAM
        exact = length > 1 or self._slots < cache.prompt_length
        with torch.inference_mode(False), torch.no_grad():
            if batch == 1 and valid is None:
                run = engine.exact if exact else engine.decode
                own = query.squeeze(0), keys.squeeze(0), values.squeeze(0)  # a third of the time that an index takes
                return run(self._layer, 0, *own, scaling).unsqueeze(0)
            out = torch.zeros_like(query)  # what padding attends to does not matter, but must be a number
            places = {b: index for b in range(batch) if (index := _present(valid, b)) is not None}
            given = ((b, query[b, :, at], keys[b, :, at], values[b, :, at]) for b, at in places.items())
            outs: Iterator[torch.Tensor]
            if exact:
                outs = (engine.exact(self._layer, *each, scaling) for each in given)
            else:
                engine.announce(self._layer, query, keys, values)
                outs = engine.decode_batch(self._layer, given, scaling)
            for (b, at), each in zip(places.items(), outs, strict=True):
                out[b, :, at] = each
        return out

    def recorded(self) -> Iterator[Chunk]:
        """The prompt of a recording cache's one sequence, chunk by chunk."""
        engine = self._cache.engine(1)
        assert isinstance(engine, RecordingEngine)
        return engine.prompt(self._layer, 0)

    def rewind(self, tokens: int) -> None:
        """Forget what a recording cache's one sequence holds after ``tokens`` of its prompt, the end of a chunk."""
        if self._slots:
            engine = self._cache.engine(1)
            assert isinstance(engine, RecordingEngine)
            engine.rewind(self._layer, 0, tokens)
            self._slots = tokens

    def admit(self, chunk: Chunk) -> None:
        """Cache the next part of a prompt that was recorded elsewhere, in a batch of one."""
        engine = self._cache.engine(1)
        with torch.inference_mode(False), torch.no_grad():
            engine.admit(self._layer, 0, chunk.query, chunk.keys, chunk.values, chunk.lse, chunk.scaling)
        self._slots += chunk.keys.shape[1]
        self.is_initialized = True

    def get_seq_length(self) -> int:
        return self._slots

    def get_mask_sizes(self, query_length: int | torch.Tensor) -> tuple[int, int]:
        """Tokens seen and coming, asked for when a forward pass begins; early 5.x gives the new positions instead."""
        self._check_attended()
        self._cache.check_whole()
        length = query_length if isinstance(query_length, int) else query_length.shape[0]
        return self._slots + length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        """The name of ``get_max_length`` before transformers 5.24."""
        return -1

    def reset(self) -> None:
        self._slots = self._pending = 0
        self.is_initialized = False

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        raise ModelError("HillInfer does not copy contexts, as beam search needs it: use num_beams=1")

    def batch_repeat_interleave(self, repeats: int) -> None:
        raise ModelError("HillInfer does not copy contexts: repeat the prompt in the batch instead")

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        raise ModelError("HillInfer does not drop sequences of a batch: make a new cache for the smaller one")

    def crop(self, tokens_to_remove: int) -> None:
        raise ModelError("HillInfer's log is write-once and takes no token back: assisted decoding is not supported")


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The attention function "hillinfer". query [B, H·G, T, d] → [B, T, H·G, d]."""
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    for name in _UNSUPPORTED:
        if kwargs.get(name) is not None:
            raise ModelError(f"this model's attention uses {name!r}, which HillInfer does not support yet")
    layer: HillInferLayer | None = getattr(key, _MARK, None)
    if layer is None:
        mask = _stock_mask(attention_mask, query.shape[2], key.shape[2], query.device)
        out: tuple[torch.Tensor, torch.Tensor | None] = sdpa_attention_forward(
            module, query, key, value, mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return out
    if attention_mask is not None and attention_mask.dim() != 2:
        attention_mask = _padding_of(attention_mask)
    return layer.attend(query, key, value, attention_mask, scaling), None


def _present(valid: torch.Tensor | None, sequence: int) -> slice | torch.Tensor | None:
    """Which of the new tokens of a sequence are no padding, ``valid`` bool [B, T]; None: it has none of its own."""
    if valid is None or bool(valid[sequence].all()):
        return slice(None)
    return valid[sequence].nonzero()[:, 0] if bool(valid[sequence].any()) else None


def _padding_of(mask: torch.Tensor) -> torch.Tensor:
    """The padding bool [B, kv] in a mask [B, 1, T, kv] of a model's own (OPT before 5.24); it must be causal."""
    allowed = mask if mask.dtype == torch.bool else mask == 0
    padding = allowed[:, 0, -1]
    length, total = mask.shape[-2:]
    causal = torch.ones(length, total, dtype=torch.bool, device=mask.device).tril(total - length)
    rows = padding[:, None, total - length :, None]  # what padding itself attends to does not matter
    if mask.shape[1] != 1 or not torch.equal(allowed & rows, causal & padding[:, None, None] & rows):
        raise ModelError("HillInfer takes causal masks with padding only, not others for single queries or heads")
    return padding


def _mask(*, attention_mask: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor | None:
    """The mask function "hillinfer": of plain causal attention only the padding is passed on, bool [B, kv] or None.

    Everything else (sliding windows, chunks, overlays, caches of a fixed size) is transformers' own boolean mask.
    """
    if not _grows(kwargs):
        kwargs["allow_is_causal_skip"] = False  # None is for what is causal up to the last key
    plain = kwargs.get("local_size") is None and not kwargs.get("use_vmap")
    if not plain or not kwargs.get("allow_is_causal_skip", True):
        mask: torch.Tensor | None = sdpa_mask(attention_mask=attention_mask, **kwargs)
        return mask
    if attention_mask is None or bool(attention_mask.all()):
        return None
    return attention_mask.bool()


def _grows(kwargs: dict[str, Any]) -> bool:
    """Whether a cache holds just the tokens so far: early 5.x tells the new positions, later ones offset and length."""
    end = int(kwargs["kv_length"]) + int(kwargs.get("kv_offset", 0))
    if "cache_position" in kwargs:
        return int(kwargs["cache_position"][-1]) + 1 == end
    offset = kwargs.get("q_offset", 0)
    return isinstance(offset, int) and offset + int(kwargs["q_length"]) == end


def _stock_mask(mask: torch.Tensor | None, length: int, total: int, device: torch.device) -> torch.Tensor | None:
    """What ``_mask`` left out, for caches of others: bool [B or 1, 1, T, kv]."""
    if (mask is None and (length == 1 or length == total)) or (mask is not None and mask.dim() != 2):
        return mask
    query = torch.arange(total - length, total, device=device)
    causal = torch.arange(total, device=device)[None, :] <= query[:, None]
    return causal[None, None] if mask is None else causal[None, None] & mask[:, None, None, :total]


def _check_model(model: PreTrainedModel) -> None:
    name, config = _name(model), model.config.get_text_config(decoder=True)
    if getattr(model.config, "is_encoder_decoder", False):
        raise ModelError(f"{name} is an encoder-decoder: HillInfer serves causal (decoder-only) models")
    if not model.can_generate():
        raise ModelError(f"{name} does not generate text: load it as AutoModelForCausalLM")
    if not getattr(model, "_supports_attention_backend", False):
        raise ModelError(f"{name} does not let its attention be replaced, so HillInfer cannot serve it")
    if getattr(config, "num_kv_shared_layers", 0):
        raise ModelError(f"{name} shares keys and values between layers, which HillInfer does not support yet")
    if getattr(config, "attn_logit_softcapping", None):
        raise ModelError(f"{name} caps its attention logits, which HillInfer does not support yet")


def _name(model: PreTrainedModel) -> str:
    return type(model).__name__


def geometry_of(model: PreTrainedModel, layers: int) -> Geometry:
    """The shape of a model's keys and values in ``layers`` of its layers; ModelError where heads differ in shape."""
    config = model.config.get_text_config(decoder=True)
    try:
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    except (AttributeError, ValueError) as error:
        raise ModelError(f"{_name(model)} does not have one shape of heads: not supported yet ({error})") from None
    return Geometry(layers, kv_heads, heads // kv_heads, head_dim, model.dtype)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, _mask)
