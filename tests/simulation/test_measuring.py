"""Measurements of this machine, on a tiny model: each gives its figures, however often its turn comes."""

from __future__ import annotations

import pytest

from hillinfer.integrations.transformers import geometry_of
from hillinfer.policies import HillInfer, Quest, StreamingLLM
from hillinfer.simulation.hardware import Number
from hillinfer.simulation.measuring.drive import DriveProbe
from hillinfer.simulation.measuring.engine import EngineProbe
from hillinfer.simulation.measuring.here import Probes
from hillinfer.simulation.measuring.kept import BUDGET, KeptProbe
from hillinfer.simulation.measuring.model import ModelProbe
from hillinfer.simulation.measuring.stock import StockProbe
from hillinfer.simulation.measuring.ways import Bare, indexed_way
from hillinfer.simulation.validation_settings import settings_of
from tests.tiny import tiny


@pytest.fixture(scope="module")
def model():
    return tiny()


def take(probe, steps):
    probe.prepare()
    for _ in range(steps):
        probe.step()
    return probe


def test_the_model_is_whole_again(model) -> None:
    before = len(model.base_model.layers)
    probe = take(ModelProbe(model), 3)
    assert len(model.base_model.layers) == before == probe.layers
    assert probe.weight_bytes == sum(part.weight.nbytes for part in model.modules() if hasattr(part, "in_features"))
    assert probe.linear_rate > 0
    assert min(probe.per_layer, probe.per_step) >= 0


def test_the_stock_cache_stays_as_long_as_it_was(model) -> None:
    """Cropping to a length is refused by transformers, which wants a number of tokens to remove: found by a run."""
    probe = take(StockProbe(model, 64), 40)
    assert 64 <= probe._cache.get_seq_length() < 64 + 16
    assert len(probe.samples["append"]) == len(probe.samples["attend"]) == len(probe.samples["step"]) == 40
    assert all(
        append + attend < step
        for append, attend, step in zip(*map(probe.samples.get, ("append", "attend", "step")), strict=True)
    )
    probe.close()


def test_the_engine_by_its_parts(model, tmp_path) -> None:
    probe = take(EngineProbe(model, HillInfer(alpha=0.2), 600, "20%", tmp_path), 4)
    assert probe.tokens == 604  # eight were decoded
    assert probe.attended == 121
    assert probe.median("cold") > 0
    for part in ("evaluate", "select", "attend", "attend cold", "place", "wait for cold rows"):
        assert probe.median(part) > 0, part
    placed = [span for span in probe.cache.trace.spans if span.name == "place"]
    assert len(placed) == 2  # of a layer each: those of the untraced step were done within it
    probe.close()


def test_what_is_kept(model) -> None:
    probe = take(KeptProbe(model, StreamingLLM(budget=BUDGET), 500), 2)
    assert probe.attended == 100
    assert len(probe.samples["step"]) == 2
    probe.close()


def test_the_drive(model, tmp_path) -> None:
    probe = take(DriveProbe(geometry_of(model, 1), tmp_path), 3)
    probe.write()
    assert set(probe.samples["one requests"]) == {1.0}
    assert max(probe.samples["many requests"]) <= 128
    assert min(probe.latency, probe.iops, probe.read_rate, probe.write_rate, probe.row) > 0
    probe.close()


def test_the_figures_are_of_one_layer(model, tmp_path) -> None:
    """Put together again they give the step they were taken from: found where a step's time passed for a layer's."""
    probes = Probes(model, tmp_path, lambda _: None)
    for probe in probes.contenders:
        take(probe, 3)
    box, near = probes.hardware(), probes.stock[0]
    probes.close()
    layers, row_bytes = probes.model.layers, geometry_of(model, 1).row_bytes
    growing = near.tokens * row_bytes * (1 / box.software.stock_append + 1 / box.software.stock_attend)
    whole = probes.model.median("floor") + layers * (box.software.stock_layer + growing)
    assert layers > 1
    assert whole == pytest.approx(near.median("step")) or box.software.stock_layer == 0


def test_a_policy_with_an_index_says_how_many_rows_it_attends_to(model, tmp_path) -> None:
    probe = take(EngineProbe(model, Quest(budget="20%", dense_layers=1), 600, "120%", tmp_path), 2)
    assert probe.whole_layers == 1
    assert 0 < probe.median("head rows") <= probe.attended <= probe.median("rows") <= 3 * probe.attended
    assert probe.median("locate") > 0
    probe.close()


def test_the_parts_of_an_indexed_step_give_the_step_again(model, tmp_path) -> None:
    probes = [
        take(EngineProbe(model, Quest(budget="20%", dense_layers=1), tokens, "120%", tmp_path), 3)
        for tokens in (300, 2000)
    ]
    near, row_bytes, layers = probes[0], geometry_of(model, 1).row_bytes, 2
    whole = {"layer": Number(1e-5, "test"), "attend": Number(1e9, "test")}
    way = indexed_way(probes, Bare(0.0, layers, row_bytes), whole, 0.0)
    again = whole["layer"] + near.tokens * row_bytes / whole["attend"] + way["layer"] + near.tokens * way["token"]
    again += near.median("rows") * way["row"] + near.median("head rows") * row_bytes / way["attend"]
    assert again == pytest.approx(near.median("step")) or way["layer"] == 0
    for probe in probes:
        probe.close()


def test_settings_and_what_they_are_called() -> None:
    settings = settings_of([512, 1024], [0.1], [0.2, 1.0])
    assert [(each.context, each.policy, each.hot_share) for each in settings[: len(settings) // 2]] == [
        (512, "full", 1.0),
        (512, "streaming-llm", 1.0),
        (512, "h2o", 1.0),
        (512, "hillinfer α=0.1", 0.2),
        (512, "hillinfer α=0.1", 1.0),
        (512, "hillinfer α=1", 0.2),
        (512, "hillinfer α=1", 1.0),
        (512, "hillinfer α=0.1, lookahead 1", 0.2),
        (512, "quest", 0.2),
        (512, "quest", 1.0),
        (512, "leoam", 0.2),
        (512, "leoam", 1.0),
        (512, "infinigen", 0.2),
        (512, "infinigen", 1.0),
    ]
    assert {each.context for each in settings[14:]} == {1024}
    assert [each.alpha for each in settings_of([512], [0.1, 1.0], [0.2]) if each.lookahead] == [0.1]
    assert not any(each.method == "hillinfer" for each in settings_of([512], [], [0.2]))
