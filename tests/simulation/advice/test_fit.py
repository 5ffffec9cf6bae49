"""What fits where, how fast: closed forms, and that more hardware is never slower."""

from __future__ import annotations

import re

import pytest

from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.simulation.advice.fit import METHODS, cell, check_weights, fit, longest
from hillinfer.simulation.advice.tiers import tiers
from hillinfer.simulation.advice.variants import AS_IT_IS, custom, variants
from hillinfer.simulation.hardware import Hardware, Number, load
from hillinfer.simulation.shape import named
from tests.simulation.boxes import here, way

SHAPE = named("llama-3.1-8b")


@pytest.fixture(scope="module")
def box() -> Hardware:
    return load("paper")


def test_bytes_by_hand(box: Hardware) -> None:
    there = tiers(box, SHAPE, 32768, 4)
    assert there.kv == 32 * 4 * 32768 * 2 * 8 * 128 * 2
    assert there.scoring_copy == there.kv // 4  # INT8 keys of FP16 keys and values
    weights = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) * 2 + 2 * 128256 * 4096 * 2
    assert there.weights == weights
    assert there.weights_on_gpu == weights  # 16 of 24 GB
    assert there.dram_free == 68.72e9
    assert there.hot_share == 1.0
    small = tiers(custom(box, gpu_memory=int(10e9), dram=int(16e9)), SHAPE, 131072, 1)
    activations = 512 * (2 * 4096 + 2 * 4096 + 2 * 1024 + 3 * 14336) * 2 + 4 * 128256  # a chunk's, and logits
    assert small.dram_free == pytest.approx(16e9 - (weights - (10e9 - 1.408e9 - activations)))
    assert small.hot_share == pytest.approx(small.dram_free / small.kv)


def test_a_policy_takes_here_what_was_measured_of_it() -> None:
    ways = {name: way(layer=seconds) for seconds, name in enumerate(("h2o", "leoam", "infinigen"), 1)}
    hardware = here(ways=ways, whole=way(layer=5.0))
    ms = {name: cell(hardware, SHAPE, name, 8192, 1).ms for name in ways}
    layers = SHAPE.layers
    assert ms["h2o"] == pytest.approx(1e3 * layers)
    assert ms["leoam"] == pytest.approx(2e3 * layers)
    assert ms["infinigen"] == pytest.approx(3e3 * (layers - 2) + 2 * 5e3)  # two layers whole


@pytest.mark.parametrize("method", METHODS)
def test_more_is_never_slower(method: str, box: Hardware) -> None:
    small = custom(box, dram=int(8e9), gpu_memory=int(18e9))
    times = [
        cell(custom(small, dram=int(dram)), SHAPE, method, 65536, 1).ms or float("inf") for dram in (8e9, 16e9, 64e9)
    ]
    assert times == sorted(times, reverse=True)
    once = cell(small, SHAPE, method, 65536, 1).ms or float("inf")
    twice = cell(small.changed(smartssd__cards=Number(2, "two")), SHAPE, method, 65536, 1).ms or float("inf")
    assert twice <= once * (1 + 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_longer_context_is_never_quicker(method: str, box: Hardware) -> None:
    times = [cell(box, SHAPE, method, tokens, 1).ms for tokens in (8192, 32768, 131072)]
    known = [ms for ms in times if ms is not None]
    assert known == sorted(known)


def test_a_kv_cache_of_just_more_than_dram_lies_on_the_drive_too(box: Hardware) -> None:
    found = cell(custom(box, dram=int(64e9)), SHAPE, "full", 131072, 4)  # 68.7 GB beside 64 GB of DRAM
    assert found.ms is not None
    assert found.where == "92% in DRAM, the rest on the drive"


def test_a_box_that_is_too_small_says_what_would_fit(box: Hardware) -> None:
    small = custom(box, gpu_memory=int(17e9), dram=int(2e9), ssd=int(4e9))
    with pytest.raises(MemoryBudgetError, match="serves up to") as told:
        fit(small, SHAPE, [1 << 20], [1], ["hillinfer"])
    tokens = longest(small, SHAPE, "hillinfer", 1)
    assert f"{tokens:,}" in str(told.value)
    assert cell(small, SHAPE, "hillinfer", tokens, 1).ms is not None
    assert cell(small, SHAPE, "hillinfer", tokens + 1024, 1).ms is None


def test_weights_that_do_not_fit_are_said(box: Hardware) -> None:
    small = custom(box, gpu_memory=int(8e9), dram=int(4e9))
    with pytest.raises(MemoryBudgetError, match=r"the weights of llama-3\.1-8b are 16\.1 GB") as told:
        fit(small, SHAPE, [8192], [1])
    [enough] = re.findall(r"at least (\d+) GB of DRAM", str(told.value))
    check_weights(custom(small, dram=int(enough) * 10**9), SHAPE)


def test_unknown_names_are_told_the_nearest(box: Hardware) -> None:
    with pytest.raises(SettingError, match="did you mean 'infinigen'"):
        fit(box, SHAPE, [8192], [1], ["infinegen"])
    with pytest.raises(SettingError, match="no smartssd"):
        custom(box.model_copy(update={"smartssd": None}), cards=2)
    with pytest.raises(SettingError, match="above 0"):
        custom(box, dram=0)


def test_variants_change_one_part_and_say_their_source(box: Hardware) -> None:
    found = variants(box)
    assert found[AS_IT_IS] is box
    cards = found["twice the SmartSSDs"].smartssd
    assert cards is not None
    assert cards.cards == 2
    assert found["a PCIe 5 SSD, no SmartSSD"].smartssd is None
    assert found["a PCIe 5 SSD, no SmartSSD"].ssd.read == 14.5e9
    assert "Micron" in found["a PCIe 5 SSD, no SmartSSD"].ssd.read.source
    assert found["twice the DRAM"].dram.capacity == 2 * 68.72e9
