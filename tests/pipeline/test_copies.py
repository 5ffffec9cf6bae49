"""The engine with every scoring copy: what it selects, what that depends on, and what it takes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from hillinfer.config import Budget, StoreSettings
from hillinfer.csd import native, rtl
from hillinfer.errors import DeviceError, MemoryBudgetError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer

COPIES = ["int8", "int4", "projected/2", "projected/4", "projected/8"]
GEOMETRY = Geometry(1, 2, 2, 32, torch.float32)
POLICY = HillInfer(alpha=0.1, floor=8)
SCALING = 32**-0.5


def _tokens(count, seed=0):
    """Queries [H·G, n, d], keys and values of one stream: keys vary along a few directions, around a large mean."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(2, 32, 32, generator=torch.Generator().manual_seed(99))
    falling = torch.exp(-torch.arange(32) / 3)
    keys = (torch.randn(2, count, 32, generator=generator) * falling) @ mixing + 3 * mixing[:, :1]
    query = torch.randn(4, count, 32, generator=generator) * 2
    return query, keys, torch.randn(2, count, 32, generator=generator)


def _engine(folder, copy, policy=POLICY, **settings):
    hot = Budget.parse(settings.pop("hot", "20%"))
    expected = settings.pop("expected", 0)
    store = StoreSettings(hot_bytes=hot, cold_dir=folder, scoring_copy=copy, **settings)
    return TieredEngine(
        GEOMETRY, policy, store, sequences=1, max_tokens=4096, device=torch.device("cpu"), expected=expected
    )


def _run(engine, chunks=(500,), steps=80):
    """The sets that each step attends to, and outputs."""
    sets, outs, first = [], [], 0
    engine.witness = lambda _layer, _sequence, chosen: sets.append(np.concatenate(chosen).tolist())
    total = sum(chunks)
    query, keys, values = _tokens(total + steps)
    for chunk in chunks:
        part = slice(first, first + chunk)
        engine.exact(0, 0, query[:, part], keys[:, part], values[:, part], SCALING)
        first += chunk
    for token in range(total, total + steps):
        part = slice(token, token + 1)
        outs.append(engine.decode(0, 0, query[:, part], keys[:, part], values[:, part], SCALING))
    ledger = engine.settled_ledger()
    engine.close()
    return sets, torch.stack(outs), ledger


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("scope", ["token", "head"])
def test_what_is_selected_depends_on_no_budget_and_no_chunk(tmp_path, copy, scope):
    """A projection is refitted on the way (80 tokens are more than a sixteenth of 500)."""
    policy = dataclasses.replace(POLICY, scope=scope, cold_margin=0)
    sets, outs, _ = _run(_engine(tmp_path, copy, policy))
    tile = 64 * (GEOMETRY.row_bytes + 64)
    for budgets in ({"hot": "12%"}, {"device_bytes": Budget(nbytes=5 * tile)}):
        again, out, _ = _run(_engine(tmp_path, copy, policy, **budgets))
        assert again == sets
        assert torch.equal(out, outs)
    again, out, _ = _run(_engine(tmp_path, copy, policy), chunks=(200, 1, 63, 236))
    assert again == sets
    torch.testing.assert_close(out, outs)


def test_what_is_selected_is_nearly_what_int8_keys_select(tmp_path):
    expected, _, _ = _run(_engine(tmp_path, "int8"))
    shares = []
    for copy in COPIES:
        sets, _, _ = _run(_engine(tmp_path, copy))
        shares.append(np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(sets, expected, strict=True)]))
    assert shares[1] > 0.85
    assert shares[2] > 0.7
    assert shares[3] > 0.5
    assert shares[4] > 0.3


@pytest.mark.parametrize("copy", ["int8", "int4", "projected/4", "stream"])
@pytest.mark.parametrize(("device", "library"), [("native", native), ("rtl", rtl)])
def test_the_kernel_selects_what_the_software_device_does(tmp_path, copy, device, library):
    try:
        library.find_library()
    except DeviceError as error:
        pytest.skip(str(error))
    steps = 80 if device == "native" else 3
    expected, _, _ = _run(_engine(tmp_path, copy), steps=steps)
    sets, _, ledger = _run(_engine(tmp_path, copy, device=device), steps=steps)
    assert sets == expected
    assert ledger.device_scored > 0


def test_streamed_keys_are_scored_as_int8_ones(tmp_path):
    expected, outs, _ = _run(_engine(tmp_path, "int8"))
    sets, out, ledger = _run(_engine(tmp_path, "stream"))
    assert sets == expected
    assert torch.equal(out, outs)
    assert ledger.tiers.scoring.bytes == 0


@pytest.mark.parametrize("reduce", ["max-lse", "sum"])
def test_a_raw_sum_is_ranked_without_the_shift(tmp_path, reduce):
    sets, _, _ = _run(_engine(tmp_path, "int4", dataclasses.replace(POLICY, reduce=reduce)))
    expected, _, _ = _run(_engine(tmp_path, "int8", dataclasses.replace(POLICY, reduce=reduce)))
    shares = [len(set(a) & set(b)) / len(a) for a, b in zip(sets, expected, strict=True)]
    assert np.mean(shares) > 0.8


def test_a_short_context_is_attended_whole_until_there_is_enough_to_fit_to(tmp_path):
    for copy, first in (("int8", 100), ("projected/4", 256)):
        sets, _, _ = _run(_engine(tmp_path, copy), chunks=(100,), steps=200)
        assert [len(each) < 100 + step for step, each in enumerate(sets)].index(True) == first - 100


def test_the_bytes_of_a_copy_are_counted(tmp_path):
    sizes = {copy: _run(_engine(tmp_path, copy), steps=1)[2].tiers.scoring.bytes for copy in COPIES}
    stored = 500 // 64 * 64
    assert sizes["int8"] == stored * 2 * 32
    assert sizes["int4"] == sizes["int8"] / 2
    assert sizes["projected/2"] == sizes["int8"] / 4
    assert sizes["projected/4"] == sizes["int8"] / 8


def test_auto_takes_the_finest_that_fits(tmp_path):
    """A key and value of this model take 512 bytes a token: INT8 keys 64 of them."""
    for budget, copy in (("13%", "int8"), ("12%", "int4"), ("4%", "projected/2"), ("2%", "projected/4"), (0, "stream")):
        engine = _engine(tmp_path, "auto", scoring_bytes=Budget.parse(budget))
        assert engine.scoring_copy == copy
        engine.close()
    engine = _engine(tmp_path, "auto")
    assert engine.scoring_copy == "int8"
    engine.close()


def test_what_does_not_fit_is_told_with_the_least_that_works(tmp_path):
    with pytest.raises(
        MemoryBudgetError, match=r"the int4 copy of 2000 tokens' keys takes 64000: .*scoring-bytes 64000"
    ):
        _engine(tmp_path, "int4", scoring_bytes=Budget(nbytes=60000), expected=2000)
    engine = _engine(tmp_path, "int4", scoring_bytes=Budget(nbytes=64000))
    engine.expect(2000)
    with pytest.raises(MemoryBudgetError, match="the int4 copy of 2001 tokens"):
        engine.expect(2001)
    engine.close()
    with pytest.raises(SettingError, match="unknown scoring_copy 'int44': did you mean 'int4'"):
        StoreSettings(scoring_copy="int44")
    with pytest.raises(SettingError, match="leave one of them out"):
        _engine(tmp_path, "stream", device_keys="resident")
