"""The trace of a step: its format, and what it shows on tracks of its own."""

from __future__ import annotations

import json

import pytest
import torch

from hillinfer import HillInfer, HillInferCache
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.pipeline.trace import Trace
from tests.tiny import random_ids, tiny


def _events(path):
    """Complete events with their track's name, and the names in order; checks what the format asks for."""
    content = json.loads(path.read_text())
    assert set(content) == {"traceEvents", "displayTimeUnit"}
    names, order, events = {}, {}, []
    for event in content["traceEvents"]:
        assert event["pid"] == 0
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                names[event["tid"]] = event["args"]["name"]
            elif event["name"] == "thread_sort_index":
                order[event["tid"]] = event["args"]["sort_index"]
            continue
        assert event["ph"] == "X"
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        events.append((names[event["tid"]], event["name"], event["ts"], event["ts"] + event["dur"]))
    assert sorted(order) == sorted(names)
    return events, [names[tid] for tid in sorted(names, key=order.get)]


def _nest(events):
    """Spans of a track lie one behind the other or one in the other, or a viewer shows nonsense."""
    for track in {track for track, *_ in events}:
        open_until = []
        for _, name, start, end in sorted((e for e in events if e[0] == track), key=lambda e: (e[2], -e[3])):
            while open_until and open_until[-1] <= start + 0.01:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 0.01, (track, name)
            open_until.append(end)


@pytest.mark.parametrize("balance", ["off", 0.5])
def test_every_kind_of_work_has_its_track(tmp_path, balance):
    store = StoreSettings(
        cold_dir=tmp_path, hot_bytes=Budget.parse("12%"), trace=True, lookahead=1, balance=balance, device="software"
    )
    model = tiny(num_hidden_layers=4)
    with HillInferCache(model, HillInfer(alpha=0.1, floor=8), store=store) as cache, torch.inference_mode():
        settings = {cache_keyword(model): cache, "max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
        model.generate(random_ids(600, seed=1), **settings)
        cache.trace.write(tmp_path / "trace.json")
    events, tracks = _events(tmp_path / "trace.json")
    shared = ["lookahead", "host scores", "device scores", "cold reads", "reads ahead", "attention"]
    assert [track for track in tracks if track in shared] == shared
    _nest(events)
    ahead = [(start, end) for track, _, start, end in events if track.startswith("reads ahead")]
    attention = [(start, end) for track, _, start, end in events if track == "attention"]
    assert any(a < d and c < b for a, b in ahead for c, d in attention)  # read while another layer attends
    assert min(start for _, _, start, _ in events) == 0


def test_rows_of_two_sequences_come_at_once_on_two_tracks(tmp_path):
    store = StoreSettings(cold_dir=tmp_path, hot_bytes=Budget.parse("12%"), trace=True, device="software")
    model = tiny()
    with HillInferCache(model, HillInfer(alpha=0.1, floor=8), store=store) as cache, torch.inference_mode():
        settings = {cache_keyword(model): cache, "max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
        model.generate(torch.cat([random_ids(600, seed=seed) for seed in range(3)]), **settings)
        cache.trace.write(tmp_path / "trace.json")
    events, tracks = _events(tmp_path / "trace.json")
    assert [track for track in tracks if track.startswith("cold reads")] == ["cold reads", "cold reads, 2"]
    _nest(events)


def test_an_empty_trace_is_a_trace(tmp_path):
    Trace(enabled=True).write(tmp_path / "trace.json")
    assert _events(tmp_path / "trace.json") == ([], [])
