"""Is the formula's split of the scoring the best one? β swept on a device, beside what calibration and formula say.

Keys and values alone, no model: one engine is filled with synthetic tokens and decodes with β going down step by step,
so that tiles only leave the host. Both paths are measured at every β; where they cross is the best β, and what the
formula makes of the calibrated speeds is held against it. Then a fresh engine starts from the calibration and follows
the formula by itself: its balance error is what is left.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from hillinfer.calibration.measure import Measured, measure
from hillinfer.calibration.rates import Load, Times, balanced_share, beta_of
from hillinfer.config import StoreSettings
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.balancing import Balance
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer

_CHUNK = 2048
_SHARES = (0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05)
_SECONDS = 2.5  # for each figure of the calibration
_WARM = 6  # steps at a new split before it is measured


@dataclass
class Point:
    """One split: the host's share that was asked for and the one there was; seconds of a step, medians."""

    asked: float
    share: float
    cpu: float
    csd: float
    step: float


@dataclass
class Steps:
    """Seconds of every step, and of its two paths."""

    step: list[float]
    cpu: list[float]
    csd: list[float]

    def medians(self) -> dict[str, float]:
        """Of each."""
        return {name: statistics.median(seconds) for name, seconds in vars(self).items()}


class Decoding:
    """An engine filled with ``tokens`` random tokens, and the steps it does; a context that closes it.

    Queries wander slowly, so that what is selected has the locality that real decoding has.
    """

    def __init__(self, store: StoreSettings, geometry: Geometry, alpha: float, tokens: int) -> None:
        self._geometry, self._generator = geometry, torch.Generator().manual_seed(0)
        self.engine = TieredEngine(
            geometry,
            HillInfer(alpha=alpha),
            store,
            sequences=1,
            max_tokens=tokens + (1 << 12),
            device=torch.device("cpu"),
            expected=tokens,
        )
        shape = (geometry.kv_heads, geometry.group, 1, geometry.head_dim)
        self._queries = [self._random(shape) for _ in range(geometry.layers)]
        for first in range(0, tokens, _CHUNK):
            count = min(_CHUNK, tokens - first)
            keys, values = (self._random((shape[0], count, shape[3])) for _ in range(2))
            for layer in range(geometry.layers):
                query = self._queries[layer].expand(-1, -1, min(16, count), -1)
                lse = torch.full(query.shape[:3], float(np.log(tokens)))
                self.engine.admit(layer, 0, query, keys, values, lse, geometry.head_dim**-0.5)

    @property
    def balance(self) -> Balance:
        balance = self.engine.balance
        assert balance is not None
        return balance

    def steps(self, count: int) -> Steps:
        """Decode so many tokens."""
        geometry, taken = self._geometry, Steps([], [], [])
        for _ in range(count):
            keys, values = (self._random((geometry.kv_heads, 1, geometry.head_dim)) for _ in range(2))
            start = time.perf_counter()
            for layer in range(geometry.layers):
                self._queries[layer] = 0.95 * self._queries[layer] + 0.3 * self._random(self._queries[layer].shape)
                query = self._queries[layer].reshape(-1, 1, geometry.head_dim)
                self.engine.decode(layer, 0, query, keys, values, geometry.head_dim**-0.5)
            taken.step.append(time.perf_counter() - start)
            self.balance.stepped(self.engine.csd.counters)
            taken.cpu.append(self.balance.last.cpu)
            taken.csd.append(self.balance.last.csd)
        return taken

    def __enter__(self) -> Decoding:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def _random(self, shape: tuple[int, ...] | torch.Size) -> torch.Tensor:
        return torch.randn(shape, generator=self._generator).to(self._geometry.dtype)


def compare(
    store: StoreSettings,
    geometry: Geometry,
    *,
    alpha: float,
    tokens: int,
    steps: int,
    on_progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Sweep, formula and a run that follows it; the contents of the JSON file."""
    on_progress("calibrating")
    cpu, longest = torch.device("cpu"), min(tokens, 8192)
    measured = measure(store, replace(geometry, layers=1), cpu, alpha=alpha, tokens=longest, seconds=_SECONDS)
    points, load = [], Load(0, 0, 0)
    with Decoding(replace(store, balance=beta_of(_SHARES[0])), geometry, alpha, tokens) as decoding:
        for share in _SHARES:
            on_progress(f"the host scores {share:.0%}")
            point, load = _point(decoding, share, steps)
            points.append(point)
    on_progress("following the formula")
    formula = balanced_share(measured.rates, load, two_hop=True)
    with Decoding(replace(store, balance=beta_of(min(formula, _SHARES[0]))), geometry, alpha, tokens) as decoding:
        decoding.balance.follow(measured.rates)
        decoding.steps(10 * _WARM)  # until it is where it wants to be
        taken = decoding.steps(2 * steps).medians()
        followed = decoding.balance.host_share or 0.0
    return _result(measured, points, formula, Point(formula, followed, **taken))


def _point(decoding: Decoding, share: float, steps: int) -> tuple[Point, Load]:
    balance = decoding.balance
    balance.split.host = share
    decoding.steps(_WARM)
    balance.restart()
    taken = decoding.steps(steps).medians()
    return Point(share, balance.host_share or 0.0, **taken), balance.load


def crossing(points: list[Point]) -> float | None:
    """The host's share at which the two measured paths are equally long, in points of falling shares.

    Between two of them both paths are taken for straight. Below, the software device's shares are no longer those asked
    for: the host, done with its own, works on the device's. None where one path is the longer one everywhere.
    """
    for above, below in itertools.pairwise(points):
        high, low = above.cpu - above.csd, below.cpu - below.csd
        if high >= 0 > low:
            return below.share + (above.share - below.share) * -low / (high - low)
    return None


def _result(measured: Measured, points: list[Point], formula: float, followed: Point) -> dict[str, Any]:
    best = crossing(points)
    quickest = min(points, key=lambda point: point.step)
    beta, best_beta, followed_beta = (
        None if share is None or share == 1 else beta_of(share) for share in (formula, best, followed.share)
    )
    return {
        "figures": {name: figure.model_dump() for name, figure in measured.figures.items()},
        "busy": measured.busy(),
        "points": [asdict(point) for point in points],
        "formula_share": formula,
        "best_share": best,
        "quickest_share": quickest.share,
        "followed": asdict(followed),
        "summary": {
            "balance_error": Times(followed.cpu, followed.csd).error,
            "beta_formula": beta,
            "beta_best": best_beta,
            "beta_followed": followed_beta,
            "beta_off": _off(followed_beta, best_beta),
            "beta_off_before": _off(beta, best_beta),
            "step_over_quickest": followed.step / quickest.step,
        },
    }


def _off(beta: float | None, best: float | None) -> float | None:
    """By what share β is off the best one; None where one of them is not there, or infinite."""
    return abs(beta / best - 1) if beta is not None and best else None
