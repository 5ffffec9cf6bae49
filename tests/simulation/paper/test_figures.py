"""Figures: every one is worked out from the recorded runs, the same each time, and its parts agree."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import Hardware, Number, load
from hillinfer.simulation.methods.registry import named as named_method
from hillinfer.simulation.paper import pools, report, runs, setting
from hillinfer.simulation.paper.behaviour import read
from hillinfer.simulation.paper.figure import CLOSE
from hillinfer.simulation.paper.registry import FIGURES, find
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import named
from hillinfer.simulation.trace import LayerStep, Trace

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
    for run in (*runs.ALL, *runs.LONG):
        trace = runs.recorded(run)
        assert (trace.tokens, len(trace.steps)) == (run.tokens, run.steps)
        behaviour = read(trace)
        assert 0 < behaviour.moved_by_score < 1
        assert (behaviour.steps_of.sum(1) == run.tokens).all()
        attended = sum(work.attended for step in trace.steps for work in step)
        cached = sum(work.tokens for step in trace.steps for work in step)
        assert attended / cached == pytest.approx(run.alpha, rel=0.05)


def test_a_run_is_taken_of_the_context_that_is_nearer() -> None:
    assert runs.PAPER_LOW.near(1920) == runs.PAPER_LOW == runs.PAPER_LOW.long.near(100)
    assert runs.PAPER_LOW.near(131_072) == runs.PAPER_LOW.long
    assert not any(work.written_rows for step in runs.recorded(runs.PAPER_LOW).steps for work in step)
    assert any(work.written_rows for step in runs.recorded(runs.PAPER_LOW.long).steps for work in step)


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


@pytest.mark.parametrize(("run", "batch"), [*((run, 10) for run in (*runs.ALL, *runs.LONG)), (runs.PAPER_LOW, 1)])
def test_sampled_steps_take_what_all_steps_take_on_average(run: runs.Run, batch: int, box: Hardware) -> None:
    shape = named("opt-6.7b")
    trace = runs.recorded(run).scaled(shape, sequences=batch)
    method = setting.ours(box, shape, trace)
    every = simulate(box, shape, method, trace).mean_step
    assert simulate(box, shape, method, setting.sampled(trace)).mean_step == pytest.approx(every, rel=0.02)


@given(st.lists(st.integers(1, 1000), min_size=24, max_size=24))
def test_a_sample_is_of_real_steps_in_order_and_reads_what_all_read(reads: list[int]) -> None:
    trace = Trace("m", "hillinfer", [[LayerStep(1000 + at, read_rows=rows)] for at, rows in enumerate(reads)])
    [found] = zip(*setting.sampled(trace, 8).steps, strict=True)
    assert [work.tokens for work in found] == sorted({work.tokens for work in found})
    assert all(work.read_rows == reads[work.tokens - 1000] for work in found)
    mean = sum(work.read_rows for work in found) / 8
    assert abs(mean - sum(reads) / 24) <= (max(reads) - min(reads)) / 8  # each stands for two neighbours by size
    assert setting.sampled(trace, 24) is trace


@pytest.mark.parametrize("method", setting.RIVALS)
def test_an_average_step_is_enough_for_methods_whose_steps_are_alike(method: str, box: Hardware) -> None:
    shape, rival = named("opt-6.7b"), named_method(method)
    trace = runs.recorded(runs.PAPER_LOW).scaled(shape, sequences=10)
    every = replace(trace, steps=trace.steps[4::8])
    one = simulate(box, shape, rival, setting.typical(trace))
    assert one.seconds == pytest.approx(simulate(box, shape, rival, every).mean_step, rel=0.005)


@pytest.mark.parametrize("pool", [0.0, 0.1, runs.PAPER_LOW.hot, 0.3, 0.9, 1.0])
def test_a_run_with_another_pool_is_hit_as_often_as_such_pools_are(pool: float, box: Hardware) -> None:
    shape = named("opt-6.7b")
    trace = setting.work(runs.PAPER_LOW, shape, 10)
    found = pools.with_pool(trace, pool)
    works = [work for step in found.steps for work in step]
    below, cold = sum(work.hot_rows + work.cold_rows for work in works), sum(work.cold_rows for work in works)
    assert below == sum(work.hot_rows + work.cold_rows for step in trace.steps for work in step)
    assert cold / below == pytest.approx(1 - pools.hit_rate(pool), abs=1e-3)
    assert all(0 <= work.cold_requests <= work.cold_rows <= work.read_rows and work.hot_rows >= 0 for work in works)
    if pool == runs.PAPER_LOW.hot:  # nothing else either, but for the sample's own hit rate
        before, after = (simulate(box, shape, setting.HillInfer(), each).mean_step for each in (trace, found))
        assert after == pytest.approx(before, rel=0.01)


@pytest.mark.parametrize("method", [setting.OURS, *setting.RIVALS])
def test_a_larger_batch_takes_longer_and_a_quicker_drive_does_not(method: str, box: Hardware) -> None:
    shape = named("opt-6.7b")

    def seconds(hardware: Hardware, batch: int) -> float:
        return setting.generation(
            hardware, shape, method, setting.work_of(method, runs.PAPER_LOW, shape, batch)
        ).seconds

    quicker = box.changed(
        ssd__read=Number(2 * box.ssd.read, "twice"), smartssd__drive__read=Number(2 * box.ssd.read, "twice")
    )
    assert seconds(box, 1) < seconds(box, 4)
    assert seconds(quicker, 4) <= seconds(box, 4) * (1 + 1e-9)


def test_what_h2o_drops_is_not_written(box: Hardware) -> None:
    """At batch 10 the drive bounds a prompt: a fifth of the KV is a fifth of its time, up to the products' time."""
    shape = named("opt-6.7b")
    work = setting.average_work(runs.PAPER_LOW, shape, 10)
    whole = runs.TOKENS * 10 * shape.token_bytes / box.ssd.write
    assert setting.generation(box, shape, "leoam", work).prompt == pytest.approx(whole)
    assert setting.generation(box, shape, "h2o-drive", work).prompt < whole / 3


def test_every_name_is_a_figure_of_its_own() -> None:
    assert len(set(FIGURES.values())) == len(FIGURES)
