"""Decoding from a KV cache that is larger than memory: all lines, and the figures the project holds itself to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hillinfer.bench.arranging import GQA, MHA, Arrangement, Shape
from hillinfer.bench.big import methods
from hillinfer.bench.big.line import BigRow, Effort, Line, LineBench
from hillinfer.bench.bounds import Bound
from hillinfer.bench.captures import Capture

_OVER_BEST = {
    "big_32k_over_best_baseline": methods.OURS,
    "big_32k_margin_over_best_baseline": methods.OURS_MARGIN,
    "big_32k_device_copy_over_best_baseline": methods.DEVICE_COPY,
    "big_32k_device_copy_margin_over_best_baseline": methods.DEVICE_MARGIN,
}
_OVER_READS = {
    "big_32k_over_reads_bound": (MHA, 1),
    "big_32k_gqa_over_reads_bound": (GQA, 1),
    "big_32k_gqa_batch_over_reads_bound": (GQA, 4),
}
_SAME_MASS = 0.005
"""So much less may be captured and still be called equal."""
Captures = Callable[[int], Capture]
"""The capture for a context of so many tokens, the decoded steps included."""


def run(
    lines: Sequence[Line],
    effort: Effort,
    captures: Captures,
    cold_dir: Path | None,
    on_progress: Callable[[str], None],
    on_line: Callable[[list[BigRow]], None] = lambda _: None,
) -> list[BigRow]:
    """Rows of all lines; ``on_line`` is told of each line's as they come. A context is of the text's last tokens."""
    rows = []
    for line in lines:
        capture = captures(line.context)
        arrangement = Arrangement(capture, line.shape)
        fitting = Line(line.shape, capture.tokens - effort.steps, line.sequences, line.layers)
        bench = LineBench(fitting, effort, arrangement, cold_dir, on_progress)
        own = methods.ours(effort.alpha, effort.dram, effort.copy, line.sequences)
        found = bench.run(own, equal_alpha=line.sequences == 1)
        for row in found:
            row.context = line.context
        on_line(found)
        rows += found
    return rows


@dataclass
class Figures:
    """Ratios within a run; None where a line or a method is missing, and why."""

    values: dict[str, float | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def put(self, name: str, above: BigRow | None, below: BigRow | None, why: str) -> None:
        """The ratio of two rows' times."""
        if above is None or below is None or above.layer_ms is None or below.layer_ms is None:
            self.values[name], self.reasons[name] = None, why
        else:
            self.values[name] = above.layer_ms / below.layer_ms


def summary(rows: Sequence[BigRow]) -> Figures:
    """Of the lines at 32k; of batch 1 but for a step over its reads."""
    figures = Figures()
    mha, gqa = _at_32k(rows, MHA), _at_32k(rows, GQA)
    missing = "the line was not measured, or a method in it could not run (see the rows' notes)"
    ours, full, best = _find(mha, methods.OURS), _find(mha, methods.FULL), best_baseline(mha)
    figures.put("big_32k_over_full_offload", full, ours, missing)
    figures.put("big_32k_gqa_over_full_offload", _find(gqa, methods.FULL), _find(gqa, methods.OURS), missing)
    for name, method in _OVER_BEST.items():
        figures.put(name, best, _find(mha, method), missing)
        if _captures_less(_find(mha, method), ours):  # baselines are matched to the usual margin's mass
            figures.values[name], figures.reasons[name] = None, "it captures less than what baselines are matched to"
    for name in ("moved_fraction", "hot_hit_rate"):
        figures.values[name] = None if ours is None else getattr(ours, name)
    for name, (shape, sequences) in _OVER_READS.items():
        row = _find(_at_32k(rows, shape, sequences), methods.OURS)
        reads = None if row is None or not row.reads_ms or row.layer_ms is None else row.layer_ms / row.reads_ms
        figures.values[name] = reads
    for name, value in figures.values.items():
        if value is None:
            figures.reasons.setdefault(name, missing)
    return figures


def _captures_less(row: BigRow | None, than: BigRow | None) -> bool:
    if row is None or than is None or row.captured is None or than.captured is None:
        return False
    return row.captured < than.captured - _SAME_MASS


def best_baseline(rows: Sequence[BigRow]) -> BigRow | None:
    """The fastest baseline that captures as much as HillInfer does."""
    ran = [row for row in rows if row.equal == "mass" and row.layer_ms is not None]
    return min(ran, key=lambda row: row.layer_ms or 0.0, default=None)


def ratios(rows: Sequence[BigRow]) -> list[dict[str, Any]]:
    """Of every line: each method's time over HillInfer's, for both places of its scoring copy."""
    found = []
    for line in dict.fromkeys((row.shape, row.context, row.sequences) for row in rows):
        mine = [row for row in rows if (row.shape, row.context, row.sequences) == line and row.layer_ms is not None]
        for name in (methods.OURS, methods.DEVICE_COPY):
            ours = _find(mine, name)
            if ours is None or ours.layer_ms is None:
                continue
            over = {
                f"{row.method} ({row.equal})" if row.equal else row.method: (row.layer_ms or 0.0) / ours.layer_ms
                for row in mine
                if row is not ours
            }
            found.append({"shape": line[0], "context": line[1], "sequences": line[2], "of": name, "over": over})
    return found


def _at_32k(rows: Sequence[BigRow], shape: Shape, sequences: int = 1) -> list[BigRow]:
    return [row for row in rows if (row.shape, row.context, row.sequences) == (shape.name, 32768, sequences)]


def _find(rows: Sequence[BigRow], method: str) -> BigRow | None:
    return next((row for row in rows if row.method == method), None)


def as_dict(rows: Sequence[BigRow], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, rows and summary, ready for JSON."""
    figures = summary(rows)
    return {
        "benchmark": "big",
        **settings,
        "rows": [asdict(row) for row in rows],
        "ratios": ratios(rows),
        "summary": figures.values,
        "reasons": figures.reasons,
        "bounds": {name: asdict(bound) for name, bound in bounds(rows).items()},
    }


def bounds(rows: Sequence[BigRow]) -> dict[str, Bound]:
    """Of the ratios at 32k: HillInfer's rows read with nothing else."""
    mha, gqa = _at_32k(rows, MHA), _at_32k(rows, GQA)
    best = best_baseline(mha)
    compared: dict[str, tuple[BigRow | None, BigRow | None]] = {
        "big_32k_over_full_offload": (_find(mha, methods.OURS), _find(mha, methods.FULL)),
        "big_32k_gqa_over_full_offload": (_find(gqa, methods.OURS), _find(gqa, methods.FULL)),
        **{name: (_find(mha, method), best) for name, method in _OVER_BEST.items()},
    }
    for name, line in _OVER_READS.items():
        row = _find(_at_32k(rows, *line), methods.OURS)
        compared[name] = row, row
    found = {}
    for figure, (ours, over) in compared.items():
        if ours is None or over is None or not ours.reads_ms or ours.layer_ms is None or over.layer_ms is None:
            continue
        at_bound = 1.0 if ours is over else over.layer_ms / ours.reads_ms
        found[figure] = Bound("its cold rows read with nothing else", at_bound, ours.layer_ms / ours.reads_ms)
    return found
