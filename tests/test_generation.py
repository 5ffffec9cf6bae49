"""``generate``: what it returns is the model's own text, whatever the chunks; what it reports is what happened."""

from __future__ import annotations

from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from hillinfer.errors import DocumentError, SettingError
from hillinfer.generation import cache_keyword, generate
from hillinfer.integrations.transformers import CacheStats
from hillinfer.policies import create
from hillinfer.report import TierBytes, Tiers
from tests.tiny import CASES, HEAD_DIM, random_ids, tiny, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
VOCAB = len(TOKENIZER)
NEW = 12


def model_of(family: str = "llama", kv_heads: int = 2, **settings: Any) -> Any:
    return tiny(family, kv_heads, vocab_size=VOCAB, **settings)


def prompt(length: int = 80) -> torch.Tensor:
    return random_ids(length, vocab=VOCAB)


def own_text(model: Any, ids: torch.Tensor, new: int = NEW) -> str:
    """What the model says when it is simply asked, with everything at its defaults."""
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False)
    return str(TOKENIZER.decode(out[0, ids.shape[1] :], skip_special_tokens=True))


@pytest.mark.parametrize(("family", "kv_heads"), CASES)
def test_text_is_the_models_own(family: str, kv_heads: int) -> None:
    model, ids = model_of(family, kv_heads), prompt()
    report = generate(model, TOKENIZER, ids, max_new_tokens=NEW, prefill_chunk=32)
    assert report.text == own_text(model, ids)
    assert (report.prompt_tokens, report.new_tokens) == (80, NEW)


@pytest.mark.parametrize("chunk", [1, 7, 64, 512])
def test_chunk_size_changes_no_token(chunk: int) -> None:
    model, ids = model_of(), prompt()
    assert generate(model, TOKENIZER, ids, max_new_tokens=NEW, prefill_chunk=chunk).text == own_text(model, ids)


def test_full_is_the_stock_cache_too() -> None:
    model, ids = model_of(), prompt()
    report = generate(model, TOKENIZER, ids, policy=create("full"), max_new_tokens=NEW)
    assert report.text == own_text(model, ids)
    assert (report.policy, report.alpha, report.device, report.hot_hit_rate) == ("full", None, None, None)


def test_prefill_is_bounded_and_makes_logits_of_one_position() -> None:
    model, ids = model_of(), prompt()
    lengths: list[int] = []
    logits: list[int] = []
    model.model.embed_tokens.register_forward_hook(lambda _m, args, _out: lengths.append(args[0].shape[1]))
    model.lm_head.register_forward_hook(lambda _m, args, _out: logits.append(args[0].shape[1]))
    generate(model, TOKENIZER, ids, max_new_tokens=3, prefill_chunk=32)
    assert lengths == [32, 32, 15, 1, 1, 1]  # the last prompt token is the first to be decoded
    assert set(logits) == {1}


def test_callbacks_come_in_order_and_add_up() -> None:
    events: list[Any] = []
    report = generate(
        model_of(),
        TOKENIZER,
        prompt(20),
        max_new_tokens=NEW,
        prefill_chunk=7,
        on_prefill=lambda done, total: events.append((done, total)),
        on_text=events.append,
    )
    assert events[:4] == [(0, 19), (7, 19), (14, 19), (19, 19)]
    assert all(isinstance(event, str) and event for event in events[4:])
    assert "".join(events[4:]) == report.text


def test_prompt_of_one_token_has_no_prefill() -> None:
    model, ids = model_of(), prompt(1)
    calls: list[Any] = []
    report = generate(model, TOKENIZER, ids, max_new_tokens=NEW, on_prefill=lambda *done: calls.append(done))
    assert report.text == own_text(model, ids)
    assert calls == []
    assert report.prefill_tokens_per_s == 0


def test_sampling_follows_the_seed_and_leaves_the_callers_randomness_alone() -> None:
    model, ids = model_of(), prompt()

    def text(seed: int, top_p: float = 0.9) -> str:
        return generate(model, TOKENIZER, ids, max_new_tokens=NEW, temperature=1.0, top_p=top_p, seed=seed).text

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert text(1) == text(1)
    assert len({text(seed) for seed in range(4)}) > 1
    assert text(1, top_p=1e-6) == own_text(model, ids)  # a nucleus of one token is the likeliest one
    assert torch.equal(torch.rand(3), expected)


def test_models_own_sampling_settings_do_not_override_what_was_asked() -> None:
    model, ids = model_of(), prompt()
    expected = own_text(model, ids)
    model.generation_config.do_sample = True
    model.generation_config.temperature = 5.0
    model.generation_config.top_k = 3
    assert generate(model, TOKENIZER, ids, max_new_tokens=NEW).text == expected


def test_stops_at_the_models_end_token() -> None:
    model, ids = model_of(), prompt()
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False)
    model.generation_config.eos_token_id = int(out[0, 80 + 4])
    report = generate(model, TOKENIZER, ids, max_new_tokens=NEW)
    assert report.new_tokens <= 5
    assert report.text == TOKENIZER.decode(out[0, 80 : 80 + report.new_tokens], skip_special_tokens=True)


def test_report_measures_what_the_stock_cache_holds() -> None:
    report = generate(model_of(kv_heads=2), TOKENIZER, prompt(), max_new_tokens=NEW)
    cached = 80 + NEW - 1  # the last new token is never fed back
    assert report.tiers.device.bytes == 2 * 2 * cached * 2 * HEAD_DIM * 4  # layers, K and V, heads, float32
    assert report.tiers.device.peak_bytes == report.tiers.device.bytes
    assert (report.tiers.hot, report.tiers.cold) == (TierBytes(), TierBytes())
    assert report.prefill_tokens_per_s > 0
    assert report.decode_ms_per_token is not None
    assert report.decode_ms_per_token > 0
    assert report.rss_peak_bytes > 50 << 20  # torch alone is more


def test_one_new_token_has_no_decode_time() -> None:
    assert generate(model_of(), TOKENIZER, prompt(), max_new_tokens=1).decode_ms_per_token is None


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_new_tokens": 0}, "at least 1"),
        ({"temperature": -0.1}, "use 0"),
        ({"temperature": float("nan")}, "use 0"),
        ({"top_p": 0.0}, "up to 1"),
        ({"top_p": 1.5}, "up to 1"),
        ({"prefill_chunk": 0}, "at least 1 token"),
        ({"trace_file": "trace.json"}, "no tiers to trace"),
    ],
)
def test_settings_out_of_range_name_the_fix(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        generate(model_of(), TOKENIZER, prompt(), **settings)


def test_only_one_prompt_and_not_an_empty_one() -> None:
    with pytest.raises(SettingError, match="one sequence"):
        generate(model_of(), TOKENIZER, random_ids(8, batch=2))
    with pytest.raises(DocumentError, match="empty"):
        generate(model_of(), TOKENIZER, prompt()[:, :0])


@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_the_caches_keyword_is_seen_through_decorators(name: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def forward(self, input_ids, {name}=None): ...", space)

    @wraps(space["forward"])
    def decorated(*args: Any, **kwargs: Any) -> None: ...

    assert cache_keyword(type("Model", (), {"forward": decorated})()) == name  # type: ignore[arg-type]


class RecordingCache(DynamicCache):
    """Stands for the engine's cache: keeps everything, and notes what is asked of it and when."""

    made: list[RecordingCache]

    def __init__(self, model: Any, policy: Any, *, store: Any) -> None:
        super().__init__(config=model.config)
        self.policy, self.store, self.calls, self.prompt_length = policy, store, [], 0
        self.trace = SimpleNamespace(write=lambda path: self.calls.append(f"trace {path}"))
        self.made.append(self)

    def expect(self, total: int) -> None:
        self.calls.append(f"expect {total} with {self.get_seq_length()} cached")

    def stats(self) -> CacheStats:
        return CacheStats(Tiers(hot=TierBytes(1, 2)), 0.5, 0.25, 7, 8, 0.0, "software", 3, 0.5)

    def __enter__(self) -> RecordingCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append("close")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[RecordingCache]:
    made: list[RecordingCache] = []
    monkeypatch.setattr(RecordingCache, "made", made, raising=False)
    monkeypatch.setattr("hillinfer.integrations.transformers.HillInferCache", RecordingCache)
    return made


def test_engine_checks_before_it_computes_and_is_closed(recorded: list[RecordingCache]) -> None:
    model, ids, policy = model_of(), prompt(), create("hillinfer", alpha=0.3)
    report = generate(model, TOKENIZER, ids, policy=policy, max_new_tokens=NEW)
    assert report.text == own_text(model, ids)
    [cache] = recorded
    assert cache.calls == [f"expect {80 + NEW} with 0 cached", "close"]
    assert (cache.policy, cache.prompt_length) == (policy, 80)
    assert (report.policy, report.alpha, report.device) == ("hillinfer", 0.3, "software")
    assert (report.tiers.hot.peak_bytes, report.hot_hit_rate, report.moved_fraction) == (2, 0.5, 0.25)
    assert (report.cold_read_bytes, report.device_scan_bytes) == (7, 8)
    assert (report.device_launches, report.device_seconds, report.device_fallback) == (3, 0.5, None)


def test_alpha_is_not_reported_where_a_number_of_tokens_decides(recorded: list[RecordingCache]) -> None:
    policy = create("hillinfer", tokens=64)
    assert generate(model_of(), TOKENIZER, prompt(), policy=policy, max_new_tokens=2).alpha is None
    assert len(recorded) == 1


def test_trace_is_recorded_and_written_before_the_end(recorded: list[RecordingCache], tmp_path: Any) -> None:
    path = tmp_path / "trace.json"
    generate(model_of(), TOKENIZER, prompt(), policy=create("hillinfer"), max_new_tokens=2, trace_file=path)
    assert recorded[0].store.trace
    assert recorded[0].calls[1:] == [f"trace {path}", "close"]


def test_interrupt_leaves_all_text_so_far_and_a_closed_cache(recorded: list[RecordingCache]) -> None:
    model, ids = model_of(), prompt()
    pieces: list[str] = []
    steps = 0

    def interrupt(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == 8:
            raise KeyboardInterrupt

    expected = own_text(model, ids, new=6)
    model.lm_head.register_forward_hook(interrupt)  # in the eighth call: one chunk and six tokens were done
    with pytest.raises(KeyboardInterrupt):
        generate(
            model,
            TOKENIZER,
            ids,
            policy=create("hillinfer"),
            max_new_tokens=50,
            prefill_chunk=512,
            on_text=pieces.append,
        )
    assert "".join(pieces) == expected
    assert recorded[0].calls[-1] == "close"
