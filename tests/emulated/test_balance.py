"""β, reading ahead and the ring on an emulated card: the software device's tokens, whatever is split how."""

from __future__ import annotations

import json

import pytest
import torch

from hillinfer import HillInfer, HillInferCache
from hillinfer.calibration import file
from hillinfer.calibration.fingerprint import fingerprint
from hillinfer.calibration.measure import measure
from hillinfer.config import StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.kv.geometry import Geometry
from tests.tiny import random_ids, tiny

NEW = 6


@pytest.fixture(scope="module")
def model():
    return tiny(head_dim=32)  # FP16 keys of whole beats, as the ring needs them


def _generate(model, folder, **settings):
    store = StoreSettings(cold_dir=folder, **settings)
    with HillInferCache(model, HillInfer(alpha=0.2, floor=8), store=store) as cache:
        arguments = {cache_keyword(model): cache, "max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
        return model.generate(random_ids(700, seed=5), **arguments), cache.stats()


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    return _generate(model, tmp_path_factory.mktemp("cold"))[0]


@pytest.mark.parametrize(("keys", "beta"), [("resident", 4.0), ("stream", 0.0), ("stream", 0.5)])
def test_any_split_gives_the_same_tokens(model, expected, tmp_path, keys, beta):
    settings = {"device": "xrt:0", "device_keys": keys}
    tokens, stats = _generate(model, tmp_path, **settings, balance=beta, lookahead=1)
    assert torch.equal(tokens, expected)
    assert stats.balance_error is not None
    assert stats.lookahead_rows > 0


def test_a_calibrated_card_is_balanced_by_itself(model, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    cold = tmp_path / "cold"
    cold.mkdir()
    geometry, cpu = Geometry(1, 2, 2, 32, torch.float32), torch.device("cpu")
    store = StoreSettings(cold_dir=cold, device="xrt:0")
    measured = measure(store, geometry, cpu, seconds=0.05, tokens=1024)
    path = file.write(file.Calibration.now(fingerprint(store, geometry, cpu), measured.figures, 0.2))
    assert json.loads(path.read_text())["where"]["device"] == "xrt:0"
    tokens, stats = _generate(model, cold, device="xrt:0")
    assert torch.equal(tokens, expected)
    assert stats.host_share is not None
    assert list(cold.iterdir()) == []
