"""The methods that are compared, each within the same DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from hillinfer.bench.big.h2o_offload import H2OOffload
from hillinfer.bench.big.workload import Workload
from hillinfer.config import Budget, StoreSettings
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.opening import open_engine
from hillinfer.policies import HillInfer
from hillinfer.policies.base import Policy
from hillinfer.policies.full import Full
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.policies.infinigen import InfiniGen
from hillinfer.policies.leoam import LeoAM

FULL, OURS, DEVICE_COPY = "full offload", "hillinfer", "hillinfer, copy on the device"


@dataclass(frozen=True)
class Method:
    """A policy with a share of the DRAM budget for its pool.

    hot     of the whole KV: what the scoring copy leaves of the budget
    copy    scoring copy, of the whole KV, that is counted in DRAM
    equal   with what it is compared: "" (neither), "alpha" or "mass"
    """

    name: str
    policy: Policy
    hot: float
    copy: float = 0.0
    equal: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        """Name, and what is equal."""
        return {"": self.name, "alpha": f"{self.name}, equal α", "mass": f"{self.name}, equal mass"}[self.equal]


def full(dram: float) -> Method:
    """Everything attended: what is not in DRAM is read at every step."""
    return Method(FULL, Full(), dram)


def ours(alpha: float, dram: float, geometry: Geometry) -> Method:
    """HillInfer, its scoring copy counted in DRAM."""
    copy = geometry.score_key_bytes / geometry.row_bytes
    return Method(OURS, HillInfer(alpha=alpha), dram - copy, copy)


def device_copy(alpha: float, dram: float) -> Method:
    """HillInfer on a device with memory of its own for the scoring copy, as a SmartSSD has."""
    return Method(DEVICE_COPY, HillInfer(alpha=alpha), dram)


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
        StoreSettings(hot_bytes=Budget(share=method.hot), cold_dir=cold_dir),
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
