"""Tokens of a tiny model, a batch of two, on emulated cards: two that share the cold pool, and one that fails."""

from __future__ import annotations

import os

import pytest
import torch

from hillinfer import HillInfer, HillInferCache
from hillinfer.config import StoreSettings
from hillinfer.csd.boards.xrt import board, open_board
from hillinfer.csd.boards.xrt.launches import Launches
from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import CorruptRecordError, DeviceError, HillInferError
from hillinfer.generation import cache_keyword
from scripts.hw_emu.faults import VARIABLE
from tests.csd.kernel.twins import Twins, open_kernel
from tests.tiny import random_ids, tiny

NEW = 8


@pytest.fixture(scope="module")
def prompt():
    """Of more than 1024 tokens: two cards that share by tokens then both have some."""
    model, ids = tiny(), random_ids(1300, batch=2, seed=3)
    mask = torch.ones(2, 1300, dtype=torch.long)
    ids[1, :150] = 0
    mask[1, :150] = 0
    return model, ids, mask


def _cache(prompt, folder, **settings):
    store = StoreSettings(cold_dir=folder, **settings)
    return HillInferCache(prompt[0], HillInfer(alpha=0.2, floor=8), store=store)


def _generate(prompt, cache):
    model, ids, mask = prompt
    arguments = {cache_keyword(model): cache, "attention_mask": mask, "max_new_tokens": NEW, "do_sample": False}
    return model.generate(ids, pad_token_id=0, **arguments)


@pytest.fixture(scope="module")
def expected(prompt, tmp_path_factory):
    with _cache(prompt, tmp_path_factory.mktemp("cold")) as cache:
        return _generate(prompt, cache)


@pytest.mark.parametrize(("split", "keys"), [("layer", "resident"), ("tokens", "stream")])
def test_two_cards_share_the_cold_pool(prompt, expected, tmp_path, split, keys):
    with _cache(prompt, tmp_path, device="xrt:0,xrt:1", device_split=split, device_keys=keys) as cache:
        assert torch.equal(_generate(prompt, cache), expected)
        assert cache.stats().device_scan_bytes > 0


@pytest.mark.parametrize(
    ("fault", "settings"),
    [
        ("die_after=5", {"device": "xrt:0"}),
        ("skip_after=0", {"device": "xrt:0"}),
        ("1:die_after=5", {"device": "xrt:0,xrt:1", "device_split": "layer"}),
        ("1:die_after=5", {"device": "xrt:0,xrt:1", "device_split": "tokens"}),
    ],
)
def test_a_card_that_fails_leaves_the_same_tokens(prompt, expected, tmp_path, monkeypatch, fault, settings):
    monkeypatch.setenv(VARIABLE, fault)
    with _cache(prompt, tmp_path, on_device_error="fallback", **settings) as cache:
        assert torch.equal(_generate(prompt, cache), expected)
        assert "Score Block" in str(cache.stats().device_fallback)


def test_without_leave_it_is_one_error_and_a_reset_starts_over(prompt, expected, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "die_after=5")
    with _cache(prompt, tmp_path, device="xrt:0") as cache:
        with pytest.raises(DeviceError, match="Score Block"):
            _generate(prompt, cache)
        with pytest.raises(HillInferError, match="reset"):
            _generate(prompt, cache)
        monkeypatch.delenv(VARIABLE)
        cache.reset()
        assert torch.equal(_generate(prompt, cache), expected)
    assert list(tmp_path.iterdir()) == []


def test_a_key_log_that_was_cut_short_is_never_scored(tmp_path):
    device = open_kernel(tmp_path, open_board("xrt:0"), keys="stream")
    twins = Twins(tmp_path, device)
    twins.append(Stream(0, 0), 640)
    device.flush()
    os.ftruncate(device.scorer._keys.files[0].file.fd, 4096)
    with pytest.raises(CorruptRecordError, match="shorter than what was written"):
        list(device.submit(Stream(0, 0), twins.query(), [Run(0, 640)]))
    twins.close()


def test_a_card_that_hangs_leaves_the_same_tokens(prompt, expected, tmp_path, monkeypatch):
    """The last one: the card is lost to this process."""
    monkeypatch.setenv(VARIABLE, "hang_after=5")
    # Of launches alone: a busy machine may take longer to open a card, or for a copy.
    monkeypatch.setattr(board, "Launches", lambda *given: Launches(*given[:-1], 1.0))
    with _cache(prompt, tmp_path, device="xrt:0", on_device_error="fallback") as cache:
        assert torch.equal(_generate(prompt, cache), expected)
        assert "has not ended a launch within 1 s" in str(cache.stats().device_fallback)
