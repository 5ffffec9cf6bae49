"""The methods that are compared, each within the same DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from hillinfer.bench.big.h2o_offload import H2OOffload
from hillinfer.bench.big.workload import Workload
from hillinfer.config import Budget, StoreSettings
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.opening import open_engine
from hillinfer.policies import HillInfer
from hillinfer.policies.base import Policy
from hillinfer.policies.full import Full
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.policies.infinigen import InfiniGen
from hillinfer.policies.leoam import LeoAM

FULL, OURS, DEVICE_COPY = "full offload", "hillinfer", "hillinfer, copy on the device"
MARGIN = 3.0
"""Nats: the other margin that is shown, a sixth to a quarter of the reads of the usual one (decision 61)."""
OURS_MARGIN, DEVICE_MARGIN = f"{OURS}, margin {MARGIN:g}", f"{DEVICE_COPY}, margin {MARGIN:g}"
ONE_AT_A_TIME = f"{OURS}, one sequence after another"

COPIES = {"int8": 1 / 4, "int4": 1 / 8, "projected/2": 1 / 16, "projected/4": 1 / 32, "projected/8": 1 / 64}
"""What a scoring copy takes of an FP16 KV cache."""


@dataclass(frozen=True)
class Method:
    """A policy with a share of the DRAM budget for its pool.

    hot           of the whole KV: what a scoring copy leaves of the budget
    copy          scoring copy, one of ``COPIES``; "" for a method without one
    copy_in_dram  whether it is counted there; else it is in the device's own memory
    equal         with what it is compared: "" (neither), "alpha" or "mass"
    overlaps      one sequence's rows come while the next one is scored (decision 72)
    """

    name: str
    policy: Policy
    hot: float
    copy: str = ""
    copy_in_dram: bool = False
    equal: str = ""
    note: str = ""
    overlaps: bool = True

    @property
    def label(self) -> str:
        """Name, and what is equal."""
        return {"": self.name, "alpha": f"{self.name}, equal α", "mass": f"{self.name}, equal mass"}[self.equal]


def full(dram: float) -> Method:
    """Everything attended: what is not in DRAM is read at every step."""
    return Method(FULL, Full(), dram)


def ours(alpha: float, dram: float, copy: str, sequences: int = 1) -> list[Method]:
    """HillInfer, its scoring copy counted in DRAM; then on a device with memory of its own for it, as a SmartSSD has.

    Each with its usual margin and with ``MARGIN``; of a batch also without what its sequences have of each other.
    """
    usual, other = HillInfer(alpha=alpha), HillInfer(alpha=alpha, cold_margin=MARGIN)
    rest = dram - COPIES[copy]
    alone = [Method(ONE_AT_A_TIME, usual, rest, copy, copy_in_dram=True, overlaps=False)] if sequences > 1 else []
    return [
        Method(OURS, usual, rest, copy, copy_in_dram=True),
        *alone,
        Method(OURS_MARGIN, other, rest, copy, copy_in_dram=True),
        Method(DEVICE_COPY, usual, dram, copy),
        Method(DEVICE_MARGIN, other, dram, copy),
    ]


def baseline(name: str, policy: IndexingPolicy, equal: str, dram: float, workload: Workload) -> Method:
    """One of ``baselines``, with its budget set.

    Where the DRAM of a few layers does not hold what the engine brings together for one of them, it gets as much as
    that takes: with all layers of the model there would be enough.
    """
    geometry, tokens = workload.geometry, workload.tokens
    index = geometry.layers * workload.sequences * policy.dram_bytes(geometry, tokens)
    least = policy.attended(tokens) * geometry.row_bytes + index
    return Method(name, policy, max(dram, 1.01 * least / geometry.kv_bytes(tokens, workload.sequences)), equal=equal)


def baselines() -> dict[str, IndexingPolicy]:
    """The methods we are held against; every measured layer is one of their usual ones, none a first layer.

    Those first layers of LeoAM and InfiniGen attend to half of the context, or all of it: leaving them out is in their
    favour. InfiniGen is bounded by its budget alone: its margin of 4 nats would leave it short of the others' mass.
    """
    return {
        "H2O-like": H2OOffload(),
        "prefetch-based (InfiniGen)": InfiniGen(dense_layers=0, margin=1e9),
        "LeoAM-like": LeoAM(first_layers=0),
    }


def open_method(method: Method, workload: Workload, cold_dir: Path | None) -> Engine:
    """An empty engine; raises what the engine raises for budgets that don't serve."""
    engine = open_engine(
        workload.geometry,
        method.policy,
        StoreSettings(hot_bytes=Budget(share=method.hot), scoring_copy=method.copy or "auto", cold_dir=cold_dir),
        sequences=workload.sequences,
        max_tokens=workload.tokens + 64,
        device=torch.device("cpu"),
        expected=workload.tokens,
    )
    try:
        engine.expect(workload.tokens)
    except BaseException:
        engine.close()
        raise
    return engine
