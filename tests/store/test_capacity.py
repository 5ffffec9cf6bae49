"""Byte budgets: what they allow, and errors that name the least that works."""

import dataclasses

import psutil
import pytest
import torch

from hillinfer.config import Budget
from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.store.capacity import Capacity

GEOMETRY = Geometry(layers=4, kv_heads=2, group=3, head_dim=64, dtype=torch.float16)


def _capacity(hot, device=None, sequences=2):
    return Capacity(GEOMETRY, sequences, Budget.parse(hot), device, lambda n: n // 10)


def _tenth(tokens):
    return tokens // 10


@pytest.mark.parametrize("hot", ["5%", "20%", "100%", "3MiB", "64KiB"])
@pytest.mark.parametrize("tokens", [64, 1000, 100_000])
def test_what_fits_in_the_room_fits_in_the_budget(hot, tokens):
    capacity = _capacity(hot)
    room = capacity.room(tokens)
    tile = TILE * GEOMETRY.score_key_bytes
    used = room.rows * GEOMETRY.row_bytes + room.host_tiles * tile
    budget = Budget.parse(hot).resolve(GEOMETRY.kv_bytes(tokens, 2))
    assert used * 8 <= budget < (used + GEOMETRY.row_bytes) * 8 + 8
    assert room.pinned <= tokens // 10
    assert room.host_tiles * TILE <= room.pinned


def test_errors_name_the_least_that_works():
    with pytest.raises(MemoryBudgetError, match=r"the least that works here is 512000 bytes \(--hot-bytes 512000\)"):
        _capacity("100KB").check(10_000, _tenth)
    _capacity(512_000).check(10_000, _tenth)
    least = 8 * TILE * (GEOMETRY.row_bytes + GEOMETRY.score_key_bytes)
    with pytest.raises(MemoryBudgetError, match=f"--device-bytes {least}"):
        _capacity("20%", device=least - 1).check(10_000, _tenth)
    _capacity("20%", device=least).check(10_000, _tenth)


def test_more_than_the_machine_has():
    more = psutil.virtual_memory().total + 1
    with pytest.raises(MemoryBudgetError, match=r"hot_bytes is .* this machine has"):
        _capacity(more).check(1000, _tenth)
    with pytest.raises(MemoryBudgetError, match=r"device_bytes is .* this machine has"):
        _capacity("20%", device=more).check(1000, _tenth)


@pytest.mark.parametrize("hot", ["64MiB", "3MB", "20%"])
def test_the_rows_reserved_are_enough_at_every_length(hot):
    """A budget in bytes allows a short context more rows than a long one, which pins more and scores more tiles."""
    capacity = _capacity(hot)
    most = capacity.most_rows(1 << 20)
    assert max(min(capacity.room(tokens).rows, tokens) for tokens in range(0, 1 << 20, 4093)) <= most


def test_a_short_context_is_judged_like_one_of_a_thousand_tokens():
    verdicts = []
    for tokens in (10, 500, 1000, 1025, 5000):
        try:
            _capacity("1%", sequences=1).check(tokens, _tenth)
            verdicts.append(True)
        except MemoryBudgetError:
            verdicts.append(False)
    assert len(set(verdicts)) == 1


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1000", 1000), ("2k", 2000), ("2 KiB", 2048), ("1.5GB", 1_500_000_000), ("1gib", 2**30), ("3MB", 3_000_000)],
)
def test_sizes_are_read_as_people_write_them(text, nbytes):
    assert Budget.parse(text).nbytes == nbytes


@pytest.mark.parametrize("text", ["", "lots", "20 %%", "-5", "1.2.3", "5 parsecs"])
def test_what_is_not_a_size_is_an_error_with_examples(text):
    with pytest.raises(SettingError, match="512MiB"):
        Budget.parse(text)


@pytest.mark.parametrize("hot", ["5%", "20%", "60%", "150%", "2MiB", "40MiB"])
@pytest.mark.parametrize("whole", [{0}, {0, 2}, {0, 1, 2}, {0, 1, 2, 3}])
def test_layers_attended_whole_come_first(hot, whole):
    capacity = dataclasses.replace(_capacity(hot), whole=frozenset(whole), scored=False)
    for tokens in (64, 1000, 20_000):
        rows = [capacity.room(tokens, layer).rows for layer in range(4)]
        budget = capacity.hot.resolve(GEOMETRY.kv_bytes(tokens, 2))
        assert 2 * sum(rows) * GEOMETRY.row_bytes <= budget
        if len(whole) < 4:
            equal = min(tokens, budget // 8 // GEOMETRY.row_bytes)
            assert min(rows[layer] for layer in whole) >= equal
            assert all(rows[layer] <= tokens for layer in whole)
            others = [rows[layer] for layer in range(4) if layer not in whole]
            assert 2 * sum(others) * GEOMETRY.row_bytes >= budget * min(1 / 2, (4 - len(whole)) / 4) * 0.99 - 5000
