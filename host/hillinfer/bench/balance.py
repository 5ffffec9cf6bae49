"""Is the formula's split of the scoring the best one? β swept on a device, beside what calibration and formula say.

Keys and values alone, no model: one engine is filled with synthetic tokens and decodes with β going down and up again.
Both paths are measured at every β; where they cross is the best β, and what the formula makes of the calibrated speeds
is held against it. In turns with that, another engine that started from the calibration follows the formula by itself:
its balance error is what is left. How sure the crossing is, is measured too: of the same steps drawn again and again
(bootstrap).
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from hillinfer.calibration.measure import Measured, measure
from hillinfer.calibration.rates import Shares, Times, balanced_share, beta_of, beta_two_hop, share_of
from hillinfer.config import StoreSettings
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.balancing import Balance
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer

_CHUNK = 2048
_SHARES = (0.85, 0.75, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.25)
_SECONDS = 2.5  # for each figure of the calibration
_WARM = 8  # steps at a new split before it is measured; a tenth of the tiles comes back to the host in seven
_PASSES = 2  # down and up again
_SETTLING = 80  # steps until the follower is where it wants to be: more than it looks back on
_HELPED = 0.02  # share of the tokens: where the host scores more of the device's, the paths are not those of the split
_DRAWN = 400  # times, for the crossing's interval


@dataclass
class Steps:
    """Of every step: shares of the tokens, seconds of its two paths, and of all of it.

    share    those that were the host's
    helped   those that were the device's and scored by the host all the same
    """

    share: list[float] = field(default_factory=list)
    helped: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    csd: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)

    def __add__(self, other: Steps) -> Steps:
        return Steps(*(mine + its for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)))

    def drawn(self, rng: np.random.Generator) -> Steps:
        """As many of these steps, drawn with replacement."""
        index = rng.integers(len(self.step), size=len(self.step))
        return Steps(*([numbers[i] for i in index] for numbers in vars(self).values()))


@dataclass
class Point:
    """Medians at one split, all of the same steps; ``asked`` is the host's share that was asked for."""

    asked: float
    share: float
    helped: float
    cpu: float
    csd: float
    step: float

    @classmethod
    def of(cls, asked: float, steps: Steps) -> Point:
        """Of these steps."""
        return cls(asked, *(statistics.median(numbers) for numbers in vars(steps).values()))


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
        geometry, balance, ledger, taken = self._geometry, self.balance, self.engine.ledger, Steps()
        for _ in range(count):
            keys, values = (self._random((geometry.kv_heads, 1, geometry.head_dim)) for _ in range(2))
            host, device = ledger.host_scored, ledger.device_scored
            start = time.perf_counter()
            for layer in range(geometry.layers):
                self._queries[layer] = 0.95 * self._queries[layer] + 0.3 * self._random(self._queries[layer].shape)
                query = self._queries[layer].reshape(-1, 1, geometry.head_dim)
                self.engine.decode(layer, 0, query, keys, values, geometry.head_dim**-0.5)
            taken.step.append(time.perf_counter() - start)
            balance.stepped(self.engine.csd.counters)
            host, device = ledger.host_scored - host, ledger.device_scored - device
            taken.share.append(host / (host + device))
            taken.helped.append(balance.helped)
            taken.cpu.append(balance.last.cpu)
            taken.csd.append(balance.last.csd)
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
    start = min(share_of(beta_two_hop(measured.rates, Shares.even(alpha))), _SHARES[0])
    sweep, followed = {share: Steps() for share in _SHARES}, Steps()
    with (
        Decoding(replace(store, balance=beta_of(_SHARES[0])), geometry, alpha, tokens) as split,
        Decoding(replace(store, balance=beta_of(start)), geometry, alpha, tokens) as following,
    ):
        on_progress("following the formula")
        following.balance.follow(measured.rates)
        following.steps(_SETTLING)
        for shares in (_SHARES, _SHARES[::-1]) * _PASSES:
            for share in shares:
                on_progress(f"the host scores {share:.0%}")
                sweep[share] += _at(split, share, -(-steps // _PASSES))
            following.steps(_WARM)
            followed += following.steps(steps)
        load, asked = following.balance.load, following.balance.split.host or 0.0
    return _result(measured, sweep, balanced_share(measured.rates, load, two_hop=True), Point.of(asked, followed))


def _at(decoding: Decoding, share: float, steps: int) -> Steps:
    balance = decoding.balance
    balance.split.host = share
    decoding.steps(_WARM)
    balance.restart()
    return decoding.steps(steps)


def crossing(points: Sequence[Point]) -> float | None:
    """The host's share at which the two measured paths are equally long.

    On the straight line through the differences at all splits, as T = a + M/f makes them one: the median slope of all
    pairs of splits, and the median offset (Theil and Sen), which what hits a third of the splits does not move. Only of
    splits that are what was asked for: where the host is done first, it works on the software device's share. None
    where no line crosses.
    """
    alone = [(point.share, point.cpu - point.csd) for point in points if point.helped <= _HELPED]
    slopes = [(b - a) / (y - x) for (x, a), (y, b) in itertools.combinations(alone, 2) if x != y]
    if not slopes or (slope := statistics.median(slopes)) <= 0:
        return None
    share = statistics.median(at - apart / slope for at, apart in alone)
    return share if 0 < share < 1 else None


def interval(sweep: Mapping[float, Steps]) -> tuple[float, float] | None:
    """Where the crossing lies in 95 of 100 cases when the steps of every split are drawn anew; None if it has none."""
    rng, found = np.random.default_rng(0), []
    for _ in range(_DRAWN):
        share = crossing([Point.of(asked, steps.drawn(rng)) for asked, steps in sweep.items()])
        if share is not None:
            found.append(share)
    if len(found) < 0.95 * _DRAWN:
        return None
    low, high = np.quantile(found, (0.025, 0.975)).tolist()
    return low, high


def _result(measured: Measured, sweep: Mapping[float, Steps], formula: float, followed: Point) -> dict[str, Any]:
    points = [Point.of(asked, steps) for asked, steps in sweep.items()]
    best, between = crossing(points), interval(sweep)
    quickest = min(points, key=lambda point: point.step)
    beta, best_beta, followed_beta = (
        None if share is None or share == 1 else beta_of(share) for share in (formula, best, followed.share)
    )
    low, high = (None, None) if between is None else map(beta_of, between)
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
            "beta_best_low": low,
            "beta_best_high": high,
            "beta_followed": followed_beta,
            "beta_off": _off(followed_beta, best_beta),
            "beta_off_before": _off(beta, best_beta),
            "step_over_quickest": followed.step / quickest.step,
        },
    }


def _off(beta: float | None, best: float | None) -> float | None:
    """By what share β is off the best one; None where one of them is not there, or infinite."""
    return abs(beta / best - 1) if beta is not None and best else None
