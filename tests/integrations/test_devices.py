"""Tokens of a tiny model on boards of every kind, and when a board fails: the software device's, or one clear error."""

from __future__ import annotations

import itertools

import pytest
import torch

from hillinfer import HillInfer, HillInferCache
from hillinfer.config import StoreSettings
from hillinfer.csd import registry
from hillinfer.csd.boards.native import NativeBoard
from hillinfer.errors import DeviceError, DeviceFull, HillInferError
from hillinfer.generation import cache_keyword
from tests.csd.kernel.twins import Failing
from tests.tiny import random_ids, tiny

NEW = 8


@pytest.fixture(scope="module")
def prompt():
    """A batch of two: sequences of different lengths on one device."""
    model, ids = tiny(), random_ids(1300, batch=2, seed=3)  # more than a stretch of 1,024 tokens: a part for each board
    mask = torch.ones(2, 1300, dtype=torch.long)
    ids[1, :150] = 0
    mask[1, :150] = 0
    return model, ids, mask


def _generate(prompt, folder, cold_margin=None, **settings):
    model, ids, mask = prompt
    store = StoreSettings(cold_dir=folder, **settings)
    with HillInferCache(model, HillInfer(alpha=0.2, floor=8, cold_margin=cold_margin), store=store) as cache:
        arguments = {cache_keyword(model): cache, "attention_mask": mask, "max_new_tokens": NEW, "do_sample": False}
        return model.generate(ids, pad_token_id=0, **arguments), cache.stats()


@pytest.fixture(scope="module")
def expected(prompt, tmp_path_factory):
    return _generate(prompt, tmp_path_factory.mktemp("cold"))[0]


def _boards(monkeypatch, *boards):
    """The boards that devices of the name "native" get, in this order."""
    made = itertools.chain(boards, itertools.repeat(None))
    monkeypatch.setattr(registry, "open_board", lambda *_: next(made))


@pytest.mark.parametrize("split", ["layer", "tokens"])
@pytest.mark.parametrize("keys", ["resident", "stream"])
def test_two_boards_share_the_cold_pool(prompt, expected, tmp_path, monkeypatch, split, keys):
    boards = [NativeBoard(p2p=True) for _ in range(2)]
    _boards(monkeypatch, *boards)
    tokens, stats = _generate(prompt, tmp_path, device="native,native", device_split=split, device_keys=keys)
    assert torch.equal(tokens, expected)
    assert stats.device_scan_bytes > 0


@pytest.mark.parametrize("left", [0, 1, 40])
def test_a_board_that_fails_while_decoding_leaves_the_same_tokens(prompt, expected, tmp_path, monkeypatch, left):
    _boards(monkeypatch, Failing(left))
    tokens, stats = _generate(prompt, tmp_path, device="native", on_device_error="fallback")
    assert torch.equal(tokens, expected)
    assert stats.device_fallback == "the card fell off the bus"


def test_a_board_without_room_leaves_the_same_tokens_too(prompt, expected, tmp_path, monkeypatch):
    _boards(monkeypatch, NativeBoard(memory_bytes=64 << 10))
    tokens, stats = _generate(prompt, tmp_path, device="native", on_device_error="fallback")
    assert torch.equal(tokens, expected)
    assert "MB of it: keep the keys on the drive" in str(stats.device_fallback)


def test_without_leave_it_is_one_error_and_a_reset_starts_over(prompt, expected, tmp_path, monkeypatch):
    """The step that failed is told; the cache refuses to go on, and is as good as new after reset."""
    model, ids, mask = prompt
    _boards(monkeypatch, Failing(40), NativeBoard())
    store = StoreSettings(cold_dir=tmp_path, device="native")
    with HillInferCache(model, HillInfer(alpha=0.2, floor=8), store=store) as cache:
        arguments = {cache_keyword(model): cache, "attention_mask": mask, "max_new_tokens": NEW, "do_sample": False}
        with pytest.raises(DeviceError, match="fell off the bus"):
            model.generate(ids, pad_token_id=0, **arguments)
        with pytest.raises(HillInferError, match="reset"), torch.inference_mode():
            model(ids[:, -1:], **{cache_keyword(model): cache})
        cache.reset()
        assert torch.equal(model.generate(ids, pad_token_id=0, **arguments), expected)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_told_before_anything_is_computed(prompt, tmp_path, monkeypatch):
    _boards(monkeypatch, NativeBoard(memory_bytes=64 << 10))
    cache = HillInferCache(prompt[0], HillInfer(), store=StoreSettings(cold_dir=tmp_path, device="native"))
    with pytest.raises(DeviceFull, match=r"native has 0.1 MB of memory .* shorten the document"):
        cache.expect(100_000)
    cache.close()


def test_streamed_keys_are_scanned_at_full_precision_and_reported_so(prompt, tmp_path):
    _, ids, mask = prompt
    wide = tiny(head_dim=64), ids, mask  # heads that fill a beat of INT8, and two of FP16
    scanned = {
        keys: _generate(wide, tmp_path, device="native", device_keys=keys)[1].device_scan_bytes
        for keys in ("resident", "stream")
    }
    assert scanned["stream"] == 2 * scanned["resident"] > 0


@pytest.mark.parametrize(
    ("device", "settings"),
    [
        ("software", {"lookahead": 1}),
        ("software", {"lookahead": 1, "balance": 0.7}),
        ("native", {"lookahead": 1, "balance": 2.0, "device_keys": "resident"}),
    ],
)
def test_neither_the_split_nor_reading_ahead_changes_a_token(prompt, expected, tmp_path, device, settings):
    """A split takes memory from the pool, which a margin would ask about."""
    if "balance" in settings:
        settings = settings | {"cold_margin": 0}
        expected = _generate(prompt, tmp_path, cold_margin=0)[0]
    tokens, stats = _generate(prompt, tmp_path, device=device, **settings)
    assert torch.equal(tokens, expected)
    assert stats.lookahead_rows > 0
    assert 0 < stats.lookahead_hit_rate <= 1
    assert ("balance" in settings) == (stats.balance_error is not None)
