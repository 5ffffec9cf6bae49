"""Keeping host and device equally long at work: the split of the scoring follows β while running (paper §APP).

A step's paths are what they are in the formula. The host's: scoring its tiles, attending what is in DRAM. The device's:
scoring its tiles, reading the selected rows that are cold, attending those. Rates come from the calibration and are
refreshed by every step; which tokens are selected where is measured and not assumed.

What counts are medians of the last steps: a thread that was not running for a while was not slow (decision 64).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch

from hillinfer.calibration.file import find
from hillinfer.calibration.fingerprint import fingerprint
from hillinfer.calibration.rates import (
    Load,
    Rates,
    Shares,
    Times,
    beta_two_hop,
    even_share,
    share_of,
)
from hillinfer.config import StoreSettings, parse_balance
from hillinfer.csd.contract import Counters
from hillinfer.errors import CalibrationError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.chosen import Spent
from hillinfer.store.split import Split

logger = logging.getLogger(__name__)

_STEPS = 64  # the last ones, whose medians count
_WARM = 4  # steps that do not count: they fill buffers and page tables, and the split does not follow them
_USUAL = 8192  # tokens of a context whose α stands for all before the first step


@dataclass
class Flow:
    """Bytes of rows and the seconds they took: of one step, or the median of each over several."""

    nbytes: float = 0.0
    seconds: float = 0.0

    def add(self, nbytes: float, seconds: float) -> None:
        self.nbytes += nbytes
        self.seconds += seconds

    def rate(self, otherwise: float) -> float:
        """Bytes per second; ``otherwise`` where nothing was seen."""
        return self.nbytes / self.seconds if self.nbytes and self.seconds else otherwise


class Flows:
    """The work of a step: scoring by host and device, attending rows of DRAM, reading cold rows, attending those."""

    def __init__(self) -> None:
        self.host, self.device, self.attended, self.read, self.attended_cold = (Flow() for _ in range(5))

    @property
    def times(self) -> Times:
        """Seconds of the two paths."""
        device = self.device.seconds + self.read.seconds + self.attended_cold.seconds
        return Times(self.host.seconds + self.attended.seconds, device)

    def numbers(self) -> list[float]:
        """Bytes and seconds of each."""
        return [number for flow in vars(self).values() for number in (flow.nbytes, flow.seconds)]

    @classmethod
    def typical(cls, steps: Iterable[list[float]]) -> Flows:
        """The median of each of the ``numbers`` of one or more steps."""
        found, numbers = cls(), iter(np.median(list(steps), 0).tolist())
        for flow in vars(found).values():
            flow.add(next(numbers), next(numbers))
        return found


class Balance:
    """Measures the steps of an engine, and leans the split to where both paths end together.

    rates   to begin with; None: the split stays as it is
    """

    def __init__(self, split: Split, rates: Rates | None, row_bytes: int) -> None:
        self.split, self._rates, self._row_bytes = split, rates, row_bytes
        self._step, self._typical, self._steps = Flows(), Flows(), 0
        self._last: deque[list[float]] = deque(maxlen=_STEPS)
        self._scanned = (0, 0.0)
        self._arrived = 0.0  # when the last cold rows were there
        self._helped = 0.0  # tokens of the device's share that the host scored in this step
        self.last = Times(0.0, 0.0)
        """Seconds of the last step's two paths."""
        self.helped = 0.0
        """Share of the last step's tokens that were the device's and scored by the host."""

    def follow(self, rates: Rates) -> None:
        """From now on the split leans to where both paths end together; these rates hold until steps are measured."""
        self._rates = rates

    # ---- what a step did, told where it happens

    def scored(self, tokens: int, seconds: float, *, helping: float = 0.0, of: int = 0) -> None:
        """The host scored tokens in that time.

        helping   seconds it worked on the device's share then; what it did of those ``of`` tokens, its own speed says
        """
        helped = min(tokens * helping / seconds, of / 2) if helping and seconds else 0.0
        self._step.host.add((tokens + helped) * self._row_bytes, seconds + helping)
        self._helped += helped

    def spent(self, cold: int, spent: Spent) -> None:
        """Rows were attended, ``cold`` of them out of the cold pool, in that time.

        Where nobody waited for the cold ones, they were there before anybody looked: then the time is what the rate
        so far makes it, if that is less. Where they were asked for while those of another sequence were still coming,
        the drive was not theirs until those were there.
        """
        self._step.attended.add(spent.near * self._row_bytes, spent.attending)
        if cold:
            nbytes, arrived = cold * self._row_bytes, spent.asked + spent.reading
            reading = arrived - max(spent.asked, self._arrived)
            self._arrived = arrived
            if not spent.waited:
                reading = min(reading, nbytes / self._typical.read.rate(nbytes / reading))
            self._step.read.add(nbytes, reading)
            self._step.attended_cold.add(nbytes, spent.attending_cold)

    def restart(self) -> None:
        """Forget what was measured: the next step is the first."""
        self._steps = 0
        self._last.clear()

    def stepped(self, counters: Counters) -> None:
        """A step is over in all layers and sequences; ``counters`` are the device's."""
        tokens, seconds = counters.scanned_tokens - self._scanned[0], counters.seconds - self._scanned[1]
        self._scanned = counters.scanned_tokens, counters.seconds
        step, self._step = self._step, Flows()
        helped, self._helped = self._helped, 0.0
        if not step.host.nbytes:  # nothing was decoded: a prompt, or all is attended
            return
        step.device.add(max(0.0, tokens - helped) * self._row_bytes, seconds)
        if self._steps == _WARM:
            self._last.clear()
        self._last.append(step.numbers())
        self._typical = Flows.typical(self._last)
        self.last = step.times
        self.helped = helped * self._row_bytes / (step.host.nbytes + step.device.nbytes)
        self._steps += 1
        if self._rates is not None and self._steps > _WARM:
            self.split.lean(self.formula_share())

    # ---- what follows from it

    @property
    def steps(self) -> int:
        """Steps measured."""
        return self._steps

    @property
    def times(self) -> Times:
        """Seconds of a step's two paths, medians of the last ones."""
        return self._typical.times

    @property
    def error(self) -> float | None:
        """|T_cpu − T_csd| / max; None before a step was measured."""
        return self.times.error if self._steps else None

    @property
    def host_share(self) -> float | None:
        """Share of the tokens that the host scores, the device tier's included."""
        host, device = self._typical.host.nbytes, self._typical.device.nbytes
        return host / (host + device) if host + device else None

    def rates(self) -> Rates:
        """As measured so far, the calibration's where nothing was."""
        start, typical = self._rates or Rates(1.0, 1.0, 1.0, 1.0), self._typical
        return Rates(
            typical.host.rate(start.f_c),
            typical.device.rate(start.f_s),
            typical.attended.rate(start.b_c),
            typical.read.rate(start.b_s),
        )

    @property
    def load(self) -> Load:
        """What a step has to do, and which of the selected rows were where: medians of the last ones."""
        typical = self._typical
        return Load(typical.host.nbytes + typical.device.nbytes, typical.attended.nbytes, typical.read.nbytes)

    def formula_share(self) -> float:
        """The host's share by the formula, from measured rates and the seconds that reading and attending take.

        Those are not made of B: few rows take as long as what asking for them takes, ten times what their bytes do.
        """
        seconds = self._typical
        after = seconds.read.seconds + seconds.attended_cold.seconds
        return even_share(self.rates(), self.load.total, seconds.attended.seconds, after)


def open_balance(
    settings: StoreSettings, geometry: Geometry, compute: torch.device, attended: Callable[[int], int]
) -> Balance | None:
    """What ``settings.balance`` asks for; None where the split is not to be touched.

    attended   tokens a step attends to, as a function of the context length

    Rows pass through the host's memory with every device there is, so β is that of two hops. The software device's keys
    lie in the host's memory, where one call scores both sides' (at_once.py): there only a β that is asked for splits.
    """
    balance = parse_balance(settings.balance)
    if balance == "off" or (balance == "auto" and settings.device == "software"):
        return None
    if not isinstance(balance, str):
        return Balance(Split(share_of(balance)), None, geometry.row_bytes)
    try:
        found = find(fingerprint(settings, geometry, compute))
    except CalibrationError as error:
        logger.warning("%s; until then the host scores what is pinned", error)
        return None
    if found is None:
        return None
    alpha = Shares.even(min(1.0, attended(_USUAL) / _USUAL))
    return Balance(Split(share_of(beta_two_hop(found.rates, alpha))), found.rates, geometry.row_bytes)
