"""Figures 2 and 3 of HillInfer: how much of a step methods without near-data evaluation spend on moving KV."""

from __future__ import annotations

from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.methods.registry import named as method_named
from hillinfer.simulation.paper import runs, setting
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.statements import ALL
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import named

_MODEL = "opt-6.7b"
_WALLS = {
    "full-dram": "KV in DRAM, all of it over the GPU's link",
    "full-drive": "KV on the drive, all of it over both links",
    "infinigen": "KV on the drive, prefetched by a partial key (InfiniGen-like)",
    "leoam": "KV on the drive, chunks by their bounds (LeoAM-like)",
    "hillinfer": "HillInfer",
}


def io_walls(hardware: Hardware) -> Figure:
    """The share of a step during which the GPU has nothing to do, by batch."""
    shape, rows, series = named(_MODEL), [], []
    for name, what in _WALLS.items():
        idle = []
        for batch in setting.BATCHES:
            trace = setting.work_of(name, runs.PAPER_LOW, shape, batch)
            method = setting.ours(hardware, shape, trace) if name == setting.OURS else method_named(name)
            busy = simulate(hardware, shape, method, trace).busy_shares
            idle.append(100 * (1 - busy.get("gpu", 0.0)))
        series.append(Series(what, setting.BATCHES, idle))
        statement = None if name == setting.OURS else ALL["io-walls"]
        rows.append(Row(f"{what}: the GPU waits, batch {setting.BATCHES[-1]}", idle[-1], "% of a step", statement))
    return Figure("io-walls", f"The GPU waits for the KV cache ({_MODEL})", rows, series, "batch", "of a step, %")
