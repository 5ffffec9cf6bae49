"""The benchmark of caches larger than memory, on tiny shapes: what it counts, not how fast it is."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from hillinfer.bench.arranging import GQA, MHA, Arrangement, Shape
from hillinfer.bench.big import methods
from hillinfer.bench.big.decoding import KvDecoding, Reading
from hillinfer.bench.big.equal_mass import match
from hillinfer.bench.big.h2o_offload import H2OOffload
from hillinfer.bench.big.line import BigRow, Effort, Line, LineBench
from hillinfer.bench.big.run import as_dict, bounds, ratios, run, summary
from hillinfer.bench.big.workload import Workload
from hillinfer.csd.contract import Stream
from hillinfer.policies.full import Full
from hillinfer.policies.leoam import LeoAM
from tests.bench.made_up import made_up

TINY = Shape("tiny", 2, 2, 32, 8)
EFFORT = Effort(rounds=2, block=1, dram=0.6, alpha=0.3, copy="int8")


def workload(*, layers: int = 1, sequences: int = 1, context: int = 300, steps: int = 6) -> Workload:
    made = Workload(
        Arrangement(made_up(), TINY), TINY, layers=layers, sequences=sequences, context=context, steps=steps
    )
    for stream in made.streams:
        made.prompt(stream)
    return made


def test_attention_is_the_softmax_of_the_logits() -> None:
    made = workload()
    whole = Arrangement(made_up(), TINY).stream(0)
    keys = whole.keys[:, -made.tokens :].float()
    for step in range(made.step_count):
        query = whole.query[:, :, made.context - made.tokens + step].float()
        logits = torch.einsum("hgd,hnd->hgn", query, keys[:, : made.context + step + 1]) * made.scaling
        found = made.steps[Stream(0, 0)].attention[:, step, : made.context + step + 1]
        np.testing.assert_allclose(found, logits.softmax(-1).mean(1), atol=1e-3)


def test_captured_mass() -> None:
    steps = workload().steps[Stream(0, 0)]
    everything = np.arange(302)
    assert steps.captured(2, 302, [everything]) == pytest.approx(1, abs=0.01)
    per_head = [steps.captured(2, 302, [part, part]) for part in (everything[::2], everything[1::2])]
    own = float(steps.attention[:, 2, 302].mean())
    assert sum(per_head) == pytest.approx(1 + own, abs=0.01)
    assert steps.captured(2, 302, [everything[::2]]) == per_head[0]


def test_a_matched_budget_captures_what_was_asked_for() -> None:
    made = workload()
    for policy in methods.baselines().values():
        found = match(policy, made, 0.8, 3)
        assert found.captured == pytest.approx(0.8, abs=0.01)
        assert 0.1 < found.share < 1
        assert match(policy, made, 0.9, 3).share > found.share
    assert match(LeoAM(first_layers=0), made, 1.1, 2).share == 1


def test_h2o_keeps_what_was_attended_most_and_what_is_recent() -> None:
    made = workload()
    prompt = made.prompt(Stream(0, 0))
    index = H2OOffload(budget=60, recent=0.5, queries=300).open(made.geometry, torch.device("cpu"))[0]
    for part, _ in made.chunks(prompt):
        index.extend(part.keys, part.query)
    assert index.unsettled
    index.settle(part.keys for part, _ in made.chunks(prompt))
    [kept] = index.select(torch.zeros(2, 2, 32), 1.0) or []
    logits = torch.einsum("hgtd,hnd->hgtn", prompt.query.float(), prompt.keys.float()) * made.scaling
    mass = logits.masked_fill(torch.ones(300, 300).triu(1).bool(), -torch.inf).softmax(-1).sum((0, 1, 2))
    heavy = set(mass[:270].topk(30).indices.tolist())
    assert len(kept) == 60
    assert len(heavy & set(kept)) >= 29, "but for rounding"
    assert set(range(270, 300)) <= set(kept)


def test_reads_are_noted_and_made_again(tmp_path) -> None:
    made = workload()
    engine = methods.open_method(methods.Method("full", Full(), 0.2), made, tmp_path)
    try:
        made.fill([engine], lambda _: None)
        decoding = KvDecoding("full", engine, made)
        for _ in range(3):
            decoding.step()
        assert decoding.mean_captured == pytest.approx(1, abs=0.01)
        rows = sum(len(positions) for _, positions in decoding.reads[2])
        assert 0.6 * 300 < rows < 300
        before = engine.csd.counters.read_rows
        reading = Reading(decoding, made.geometry.row_bytes)
        reading.step()
        assert engine.csd.counters.read_rows - before == sum(len(positions) for _, positions in decoding.reads[1])
    finally:
        engine.close()


@pytest.mark.parametrize("sequences", [1, 2])
def test_a_line(tmp_path, sequences: int) -> None:
    line = Line(TINY, 300, sequences, 2)
    bench = LineBench(line, EFFORT, Arrangement(made_up(), TINY), tmp_path, lambda _: None)
    rows = bench.run([methods.ours(0.3, 0.6, "int8")[2]])
    assert [(row.method, row.equal) for row in rows] == [
        (methods.DEVICE_COPY, ""),
        (methods.FULL, ""),
        *((name, equal) for name in methods.baselines() for equal in ("alpha", "mass")),
    ]
    assert not any(row.note for row in rows)
    ours, full, *others = rows
    assert full.captured == pytest.approx(1, abs=0.01)
    assert full.budget == 1
    assert ours.budget == pytest.approx(0.3, abs=0.01)
    assert 0.3 < ours.captured < 1
    for row in others:
        wanted = (
            row.budget == pytest.approx(0.3, abs=0.05) if row.equal == "alpha" else row.captured > ours.captured - 0.1
        )
        assert wanted, row
    assert all(row.model_ms == pytest.approx(row.layer_ms * 8 / sequences) for row in rows)
    assert all(row.dram_share < (0.95 if row.equal == "mass" else 0.65) for row in rows)


def test_a_batch_one_sequence_after_another_reads_the_same(tmp_path) -> None:
    made = workload(layers=2, sequences=3)
    usual, alone = (
        each for each in methods.ours(0.3, 0.6, "int8", 3) if each.name in (methods.OURS, methods.ONE_AT_A_TIME)
    )
    assert [each.overlaps for each in (usual, alone)] == [True, False]
    assert methods.ONE_AT_A_TIME not in {each.name for each in methods.ours(0.3, 0.6, "int8", 1)}
    reads = []
    for method in (usual, alone):
        engine = methods.open_method(method, made, tmp_path)
        try:
            made.fill([engine], lambda _: None)
            decoding = KvDecoding(method.label, engine, made, overlaps=method.overlaps)
            for _ in range(3):
                decoding.step()
            reads.append([[(stream, at.tolist()) for stream, at in each] for each in decoding.reads])
        finally:
            engine.close()
    assert reads[0] == reads[1]


def test_a_method_that_does_not_fit_says_why(tmp_path) -> None:
    capture = made_up()
    rows = run(
        [Line(TINY, 400, 1, 1)],
        Effort(rounds=1, block=1, dram=0.26, copy="int8"),
        lambda _: capture,
        tmp_path,
        lambda _: None,
    )
    assert {row.context for row in rows} == {400}
    ours = next(row for row in rows if row.method == methods.OURS)
    assert ours.layer_ms is None
    assert "hot_bytes" in ours.note
    result = json.loads(json.dumps(as_dict(rows, {})))
    assert set(result["summary"].values()) == {None}
    assert result["reasons"].keys() == result["summary"].keys()


def test_the_summary_compares_lines_at_32k() -> None:
    def row(method: str, ms: float, equal: str = "", captured: float = 0.5) -> BigRow:
        line = BigRow(MHA.name, 32768, 1, 4, method, equal, 0.1, layer_ms=ms, reads_ms=ms / 1.25, moved_fraction=0.01)
        return replace(line, captured=captured)

    rows = [
        row(methods.OURS, 10),
        row(methods.OURS_MARGIN, 6, captured=0.51),
        row(methods.DEVICE_MARGIN, 5, captured=0.49),
        replace(row(methods.OURS, 9), shape=GQA.name),
        replace(row(methods.OURS, 30), shape=GQA.name, sequences=4, reads_ms=25),
        row(methods.FULL, 100),
        row("a", 2, "alpha"),
        row("a", 40, "mass"),
        row("b", 30, "mass"),
    ]
    figures = summary(rows)
    ratio = ratios(rows)[0]
    assert {methods.FULL: 10, "a (alpha)": 0.2, "a (mass)": 4, "b (mass)": 3}.items() <= ratio["over"].items()
    assert figures.values["big_32k_over_full_offload"] == 10
    assert figures.values["big_32k_over_best_baseline"] == 3
    assert figures.values["big_32k_margin_over_best_baseline"] == 5
    assert figures.values["big_32k_device_copy_margin_over_best_baseline"] is None  # it captures less
    assert "captures less" in figures.reasons["big_32k_device_copy_margin_over_best_baseline"]
    assert figures.values["big_32k_over_reads_bound"] == figures.values["big_32k_gqa_over_reads_bound"] == 1.25
    assert figures.values["big_32k_gqa_batch_over_reads_bound"] == 1.2
    assert figures.values["moved_fraction"] == 0.01
    assert figures.values["big_32k_gqa_over_full_offload"] is None
    assert figures.reasons["big_32k_gqa_over_full_offload"]
    found = bounds(rows)
    assert {name: each.distance for name, each in found.items() if each.distance != 1.25} == {
        "big_32k_gqa_batch_over_reads_bound": 1.2
    }
    assert found["big_32k_over_full_offload"].value == 12.5
    assert found["big_32k_over_reads_bound"].value == 1
    assert "big_32k_gqa_over_full_offload" not in found
