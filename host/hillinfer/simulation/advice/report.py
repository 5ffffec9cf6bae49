"""A box's table and what other parts would change of it, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hillinfer.errors import MemoryBudgetError
from hillinfer.simulation.advice.fit import Cell, fit
from hillinfer.simulation.advice.variants import AS_IT_IS, variants
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.shape import Shape


@dataclass(frozen=True)
class Advice:
    """cells of the box as it is, and of each variant by its name, the box as it is among them."""

    hardware: Hardware
    shape: Shape
    cells: Sequence[Cell]
    of_variants: dict[str, Sequence[Cell]]


def advise(
    hardware: Hardware,
    shape: Shape,
    contexts: Sequence[int],
    batches: Sequence[int],
    methods: Sequence[str],
    on_progress: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Time a box and its variants; MemoryBudgetError if nothing fits the box as it is."""
    found: dict[str, Sequence[Cell]] = {}
    for name, box in variants(hardware).items():
        on_progress(name)
        try:
            found[name] = fit(box, shape, contexts, batches, methods)
        except MemoryBudgetError:
            if name == AS_IT_IS:
                raise
            found[name] = []
    return Advice(hardware, shape, found[AS_IT_IS], found)


def as_dict(advice: Advice) -> dict[str, Any]:
    """Ready for JSON; ``rows`` are the box's own, ``variants`` the others'."""
    return {
        "kind": "hillinfer-simulate-fit",
        "version": 1,
        "hardware": advice.hardware.name,
        "model": advice.shape.name,
        "rows": [_cell(each) for each in advice.cells],
        "variants": [
            {"variant": name, **_cell(each)}
            for name, cells in advice.of_variants.items()
            if name != AS_IT_IS
            for each in cells
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "method": cell.method,
        "context": cell.context,
        "batch": cell.batch,
        "ms_per_step": cell.ms,
        "tokens_per_second": None if cell.ms is None else 1e3 * cell.batch / cell.ms,
        "where": cell.where,
        "why_not": cell.why,
        "kv_bytes": cell.tiers.kv,
        "scoring_copy_bytes": cell.tiers.scoring_copy,
        "weights_bytes": cell.tiers.weights,
        "weights_on_gpu_bytes": cell.tiers.weights_on_gpu,
        "dram_free_bytes": cell.tiers.dram_free,
    }
