"""Figures: every one is worked out from the recorded runs, the same each time, and its parts agree."""

from __future__ import annotations

import json

import pytest

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import Hardware, Number, load
from hillinfer.simulation.paper import pools, report, runs, setting
from hillinfer.simulation.paper.behaviour import read
from hillinfer.simulation.paper.figure import CLOSE
from hillinfer.simulation.paper.registry import FIGURES, find
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import named

QUICK = ["memory", "migration", "waiting", "lifetimes", "hetero-decode", "hetero-first-token", "hetero-threshold"]


@pytest.fixture(scope="module")
def box() -> Hardware:
    return load("paper")


@pytest.mark.parametrize("name", QUICK)
def test_a_figure_is_the_same_each_time(name: str, box: Hardware) -> None:
    once, again = ([figure.as_dict() for figure in report.figures([name], box)] for _ in range(2))
    assert once == again
    assert once[0]["rows"]


def test_json_has_the_statement_beside_ours(box: Hardware) -> None:
    found = report.figures(["memory", "migration"], box)
    told = json.loads(json.dumps(report.as_dict(found, box)))
    row = told["rows"][0]
    assert row["figure"] == "memory"
    assert row["paper"]["low"] == row["paper"]["high"] == 30
    assert row["difference"] == pytest.approx(row["ours"] / 30 - 1)
    assert row["reproduced"] == (abs(row["difference"]) <= CLOSE)
    assert told["compared"] == sum(row["reproduced"] is not None for row in told["rows"])


def test_the_memory_of_a_model_by_hand(box: Hardware) -> None:
    weights = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) * 2 + 2 * 151936 * 4096 * 2
    kv = 8 * 4096 * 32 * 2 * 4096 * 2
    [figure] = report.figures(["memory"], box)
    assert figure.rows[0].ours == pytest.approx((weights + kv) / 1e9)


def test_an_unknown_figure_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="did you mean 'lifetimes'"):
        find("lifetime")


def test_the_recorded_runs_are_the_papers_and_say_who_moved() -> None:
    for run in runs.ALL:
        trace = runs.recorded(run)
        assert (trace.tokens, len(trace.steps)) == (runs.TOKENS, runs.STEPS)
        behaviour = read(trace)
        assert 0 < behaviour.moved_by_score < 1
        assert (behaviour.steps_of.sum(1) == runs.TOKENS).all()
        attended = sum(work.attended for step in trace.steps for work in step)
        cached = sum(work.tokens for step in trace.steps for work in step)
        assert attended / cached == pytest.approx(run.alpha, rel=0.05)


def test_hkm_moves_less_than_placement_by_scores(box: Hardware) -> None:
    [figure] = report.figures(["migration"], box)
    without, within = figure.series
    assert all(more > 10 * less for more, less in zip(without.y, within.y, strict=True) if more and less)


def test_a_larger_pool_is_hit_more_often() -> None:
    hits = [pools.hit_rate(pool / 20) for pool in range(21)]
    assert hits == sorted(hits)
    assert hits[0] == 0
    assert hits[-1] == 1


def test_both_paths_end_together_at_the_balanced_pool(box: Hardware) -> None:
    shape = named("opt-6.7b")
    trace = setting.work(runs.PAPER_LOW, shape, 4)
    speeds = setting.rates(box, shape, setting.HillInfer())
    pool = pools.balanced_pool(speeds, shape, trace)
    assert pools.times(speeds, shape, trace, pool).error < 0.02
    assert pools.times(speeds, shape, trace, pool / 2).csd > pools.times(speeds, shape, trace, pool / 2).cpu


def test_the_typical_step_takes_what_steps_take_on_average(box: Hardware) -> None:
    shape = named("opt-6.7b")
    trace = runs.recorded(runs.PAPER_LOW).scaled(shape, sequences=4, steps=8)
    method = setting.ours(box, shape, trace)
    every = simulate(box, shape, method, trace)
    assert simulate(box, shape, method, setting.typical(trace)).seconds == pytest.approx(every.seconds / 8, rel=0.03)
    rows = sum(work.attended for step in trace.steps for work in step) / 8
    assert sum(work.attended for work in setting.typical(trace).steps[0]) == pytest.approx(rows, rel=1e-2)


@pytest.mark.parametrize("method", [setting.OURS, *setting.RIVALS])
def test_a_larger_batch_takes_longer_and_a_quicker_drive_does_not(method: str, box: Hardware) -> None:
    shape = named("opt-6.7b")

    def seconds(hardware: Hardware, batch: int) -> float:
        return setting.generation(hardware, shape, method, setting.work(runs.PAPER_LOW, shape, batch)).seconds

    quicker = box.changed(
        ssd__read=Number(2 * box.ssd.read, "twice"), smartssd__drive__read=Number(2 * box.ssd.read, "twice")
    )
    assert seconds(box, 1) < seconds(box, 4)
    assert seconds(quicker, 4) <= seconds(box, 4) * (1 + 1e-9)


def test_what_h2o_drops_is_not_written(box: Hardware) -> None:
    """At batch 10 the drive bounds a prompt: a fifth of the KV is a fifth of its time, up to the products' time."""
    shape = named("opt-6.7b")
    work = setting.work(runs.PAPER_LOW, shape, 10)
    whole = runs.TOKENS * 10 * shape.token_bytes / box.ssd.write
    assert setting.generation(box, shape, "leoam", work).prompt == pytest.approx(whole)
    assert setting.generation(box, shape, "h2o-drive", work).prompt < whole / 3


def test_every_name_is_a_figure_of_its_own() -> None:
    assert len(set(FIGURES.values())) == len(FIGURES)
