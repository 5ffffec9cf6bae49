"""Recording the runs of a tiny model: files that say who was selected, and how often heads drifted."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from hillinfer.profiling.measure import AnalysisSettings
from hillinfer.simulation.paper.behaviour import read
from hillinfer.simulation.paper.record import record
from hillinfer.simulation.paper.record_thresholds import THRESHOLDS, record_thresholds
from hillinfer.simulation.paper.runs import Run
from hillinfer.simulation.trace_file import load
from tests.tiny import VOCAB, tiny

TOKENS, STEPS = 400, 4


def _ids() -> torch.Tensor:
    return torch.randint(5, VOCAB, (TOKENS + STEPS,), generator=torch.Generator().manual_seed(3))


def test_a_run_is_a_file_without_positions_that_knows_who_moved(tmp_path: Path) -> None:
    run = Run(0.2, 0.5, TOKENS, STEPS)
    record(tiny("llama"), "tiny", _ids(), [run, Run(0.2, 0.5, TOKENS // 2, 1)], tmp_path)
    assert load(tmp_path / Run(0.2, 0.5, TOKENS // 2).file).tokens == TOKENS // 2
    trace = load(tmp_path / run.file)
    assert trace.positions is None
    assert (trace.layers, trace.tokens, len(trace.steps)) == (2, TOKENS, STEPS)
    assert trace.settings["hot"] == 0.5
    behaviour = read(trace)
    assert behaviour.entered.shape == (STEPS - 1, 2)
    assert (behaviour.attended == [[work.attended for work in step] for step in trace.steps[1:]]).all()
    assert (behaviour.steps_of.sum(1) == TOKENS).all()


def test_drifts_are_counted_by_threshold(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.json"
    alike = AnalysisSettings(steps=4, top_k=60, tau_similar=0.0)  # one pivot per layer, all others follow it
    record_thresholds(tiny("llama", kv_heads=4), "tiny", _ids(), TOKENS, STEPS, path, analysis=alike)
    found = json.loads(path.read_text())
    drifts = [row["drifts"] for row in found["rows"]]
    assert [row["threshold"] for row in found["rows"]] == list(THRESHOLDS)
    assert drifts == sorted(drifts)  # a higher threshold is sooner fallen below
    assert (found["model"], found["pivots"], found["satellites"]) == ("tiny", 2, 6)
