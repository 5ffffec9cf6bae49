"""From prompt to text and report in one call: prefill in chunks, ``model.generate``, and what both took."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import TextStreamer

from hillinfer.config import StoreSettings
from hillinfer.errors import DocumentError, SettingError
from hillinfer.memory import PeakMemory
from hillinfer.policies.budget import TokenBudget
from hillinfer.report import Report, TierBytes, Tiers

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from hillinfer.policies import Policy

FULL = "full"
"""Name of the policy that is no policy: the stock cache of transformers, all attended, all in memory."""


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    input_ids: torch.Tensor,
    *,
    policy: Policy | None = None,
    store: StoreSettings | None = None,
    max_new_tokens: int = 256,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    prefill_chunk: int = 512,
    on_text: Callable[[str], None] | None = None,
    on_prefill: Callable[[int, int], None] | None = None,
    trace_file: Path | None = None,
) -> Report:
    """Continue one prompt and say what it cost.

    input_ids       int64 [1, N], N ≥ 1: the prompt, chat template and all.
    policy          which tokens are attended; None, or the policy named "full": the stock cache, to compare.
    store           byte budgets, cold folder and device of the tiers; unused by the stock cache and by policies that
                    drop tokens, which know no tier but the device's memory.
    temperature     0: the likeliest token; above 0, drawn from the ``top_p`` nucleus with ``seed``.
    prefill_chunk   prompt tokens per forward call: bounds the memory that activations take, not the result.
    on_text         gets the text as it is finished, piece by piece; the pieces together are ``Report.text``.
    on_prefill      gets (tokens done, tokens in all), first (0, all); not called for a prompt of one token.
    trace_file      where to write what ran when (Chrome trace JSON); the stock cache has no trace.

    Prefill covers all prompt tokens but the last, which is the first one to be decoded. The model's own
    generation settings (end-of-text tokens, repetition penalty) apply. Ctrl-C passes through after all text
    so far was handed to ``on_text`` and the cache was closed.

    Raises SettingError, DocumentError, and what the engine raises when budgets, disk or device don't serve.
    """
    check_run(max_new_tokens, temperature, top_p, prefill_chunk, seed)
    if input_ids.dim() != 2 or input_ids.shape[0] != 1:
        raise SettingError(f"input_ids must be one sequence [1, N], not {list(input_ids.shape)}")
    if input_ids.shape[1] == 0:
        raise DocumentError("the prompt is empty: give at least one token")
    full = policy is None or policy.name == FULL
    if full and trace_file is not None:
        raise SettingError("the stock cache has no tiers to trace: choose another policy, or ask for no trace")
    store = replace(store or StoreSettings(), trace=trace_file is not None or (store is not None and store.trace))

    input_ids = input_ids.to(model.device)
    length = input_ids.shape[1]
    memory = PeakMemory()
    opened = _stock_cache(model) if full else _tiered_cache(model, policy, store, length, length + max_new_tokens)
    with torch.inference_mode(), opened as cache:
        prefill_seconds = _prefill(model, input_ids[:, :-1], cache, prefill_chunk, on_prefill)
        streamer = _Streamer(tokenizer, on_text)
        new_ids = _decode(model, tokenizer, input_ids, cache, streamer, max_new_tokens, temperature, top_p, seed)
        stats = None if full else cache.stats()
        report = Report(
            text=str(tokenizer.decode(new_ids, skip_special_tokens=True)),
            prompt_tokens=length,
            new_tokens=len(new_ids),
            prefill_tokens_per_s=(length - 1) / prefill_seconds if length > 1 else 0.0,
            decode_ms_per_token=streamer.ms_per_token(),
            rss_peak_bytes=memory.peak_bytes(),
            tiers=stock_tiers(cache) if stats is None else stats.tiers,
            hot_hit_rate=None if stats is None else stats.hot_hit_rate,
            moved_fraction=None if stats is None else stats.moved_fraction,
            cold_read_bytes=0 if stats is None else stats.cold_read_bytes,
            device_scan_bytes=0 if stats is None else stats.device_scan_bytes,
            alpha=_alpha(policy),
            policy=FULL if policy is None else policy.name,
            device=None if stats is None else stats.device,
            device_launches=0 if stats is None else stats.device_launches,
            device_seconds=0.0 if stats is None else stats.device_seconds,
            device_fallback=None if stats is None else stats.device_fallback,
            scoring_copy=None if stats is None else stats.scoring_copy,
            host_share=None if stats is None else stats.host_share,
            balance_error=None if stats is None else stats.balance_error,
            lookahead_hit_rate=None if stats is None else stats.lookahead_hit_rate,
            lookahead_rows=0 if stats is None else stats.lookahead_rows,
            drops=policy is not None and policy.drops,
            dropped_tokens=0.0 if stats is None else stats.dropped_tokens,
            events={} if stats is None else stats.events,
            budget=_budget(policy),
            model=str(getattr(model.config, "_name_or_path", "")),
        )
        if trace_file is not None:
            cache.trace.write(trace_file)
    return report


def check_run(max_new_tokens: int, temperature: float, top_p: float, prefill_chunk: int, seed: int = 0) -> None:
    """Raise SettingError for a setting of ``generate`` out of range; apart, to be told before loading."""
    if max_new_tokens < 1:
        raise SettingError(f"max_new_tokens is {max_new_tokens}: ask for at least 1")
    if not 0 <= temperature < float("inf"):
        raise SettingError(f"temperature is {temperature}: use 0 (the likeliest token) or more, 0.7 say")
    if not 0 < top_p <= 1:
        raise SettingError(f"top_p is {top_p}: use a share above 0 and up to 1 (1 keeps every token)")
    if not 0 <= seed < 1 << 63:
        raise SettingError(f"seed is {seed}: use a whole number from 0 on, of at most 63 bits")
    if prefill_chunk < 1:
        raise SettingError(f"prefill_chunk is {prefill_chunk}: use at least 1 token per chunk, 512 say")


def cache_keyword(model: PreTrainedModel) -> str:
    """Name of the forward parameter that takes the cache: ``cache``, before its renaming ``past_key_values``.

    Decorators of transformers keep the signature (``functools.wraps``), and the one that still takes the old
    name shows the new one: the parameters tell, and the name they show raises no deprecation warning.
    """
    return "cache" if "cache" in forward_parameters(model) else "past_key_values"


def forward_parameters(model: Any) -> set[str]:
    """Names of what a model's forward takes."""
    return set(inspect.signature(type(model).forward).parameters)


class _Streamer(TextStreamer):
    """Hands finished text on, and notes when each new token came."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, on_text: Callable[[str], None] | None) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self._on_text = on_text
        self._times: list[float] = []

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Called once per new token, with the text that is certain by now ("" too), and at the end."""
        if not stream_end:
            self._times.append(time.perf_counter())
        if text and self._on_text is not None:
            self._on_text(text)

    def ms_per_token(self) -> float | None:
        """Mean milliseconds of the decode steps after the first new token; None with fewer than two."""
        steps = len(self._times) - 1
        return (self._times[-1] - self._times[0]) / steps * 1e3 if steps > 0 else None


def _prefill(
    model: Any,
    ids: torch.Tensor,
    cache: Any,
    chunk: int,
    on_prefill: Callable[[int, int], None] | None,
) -> float:
    """Put ``ids`` [1, N] into the cache, ``chunk`` tokens at a time; returns the seconds it took."""
    total = ids.shape[1]
    if total == 0:
        return 0.0
    keywords: dict[str, Any] = {cache_keyword(model): cache, "use_cache": True}
    if "logits_to_keep" in forward_parameters(model):
        keywords["logits_to_keep"] = 1  # [1, N, vocabulary] of logits that nobody reads would dwarf the KV cache
    if on_prefill is not None:
        on_prefill(0, total)
    start = time.perf_counter()
    for begin in range(0, total, chunk):
        end = min(begin + chunk, total)
        model(ids[:, begin:end], attention_mask=ids.new_ones(1, end), **keywords)
        if on_prefill is not None:
            on_prefill(end, total)
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    return time.perf_counter() - start


def _decode(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    input_ids: torch.Tensor,
    cache: Any,
    streamer: Any,
    max_new_tokens: int,
    temperature: float,
    top_p: float,
    seed: int,
) -> list[int]:
    """Ids of the new tokens; ``cache`` holds all of ``input_ids`` [1, N] but the last."""
    sample = temperature > 0
    keywords: dict[str, Any] = {
        cache_keyword(model): cache,
        "max_new_tokens": max_new_tokens,
        "do_sample": sample,
        # All three are said both ways: a model's own settings of them must not change what was asked for.
        "temperature": temperature if sample else 1.0,
        "top_p": top_p if sample else 1.0,
        "top_k": 0 if sample else 50,  # 0: no cut; 50 is the library's neutral value, others warn without sampling
    }
    if model.generation_config.pad_token_id is None:
        keywords["pad_token_id"] = _pad_token(model, tokenizer)
    cuda = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):  # the caller's random state is not ours to change
        torch.manual_seed(seed)
        try:
            output = model.generate(input_ids, attention_mask=torch.ones_like(input_ids), streamer=streamer, **keywords)
        except KeyboardInterrupt:
            streamer.end()  # the piece of text that still waited for its word to end
            raise
    return [int(token) for token in output[0, input_ids.shape[1] :]]


def _pad_token(model: Any, tokenizer: PreTrainedTokenizerBase) -> int:
    """A token for padding: never seen with one sequence, but without it transformers warns at every call."""
    end = model.generation_config.eos_token_id
    for candidate in (
        tokenizer.pad_token_id,
        end[0] if isinstance(end, list) else end,
        tokenizer.eos_token_id,
    ):
        if candidate is not None:
            return int(candidate)
    return 0


@contextmanager
def _stock_cache(model: Any) -> Iterator[Any]:
    from transformers import DynamicCache

    yield DynamicCache(config=model.config)


@contextmanager
def _tiered_cache(model: Any, policy: Any, store: StoreSettings, prompt: int, total: int) -> Iterator[Any]:
    """The engine's cache, checked for ``total`` tokens before anything is computed, closed in any case."""
    from hillinfer.integrations.transformers import HillInferCache

    with HillInferCache(model, policy, store=store) as cache:
        cache.prompt_length = prompt
        cache.expect(total)
        yield cache


def _alpha(policy: Policy | None) -> float | None:
    """The share of tokens that bounds a step; None for a policy that has none, or was given a number instead."""
    given = (getattr(policy, name, None) for name in ("tokens", "budget"))
    return getattr(policy, "alpha", None) if all(each is None for each in given) else None


def _budget(policy: Policy | None) -> str | None:
    budget = getattr(policy, "budget", None)
    return None if budget is None else str(TokenBudget.parse(budget))


def held_tiers(cache: Any) -> Tiers:
    """What any cache holds, layers that no policy has a say in (sliding windows) included: to compare caches by."""
    from hillinfer.integrations.transformers import HillInferCache, HillInferLayer

    if not isinstance(cache, HillInferCache):
        return stock_tiers(cache)
    tiers = cache.stats().tiers
    windows = _nbytes(layer for layer in cache.layers if not isinstance(layer, HillInferLayer))
    tiers.device.set(tiers.device.bytes + windows)
    return tiers


def stock_tiers(cache: Any) -> Tiers:
    """A stock cache is all device tier and only grows, so now is the peak (sliding layers apart)."""
    nbytes = _nbytes(cache.layers)
    return Tiers(device=TierBytes(nbytes, nbytes))


def _nbytes(layers: Iterable[Any]) -> int:
    return sum(part.nbytes for layer in layers for part in (layer.keys, layer.values) if part is not None)
