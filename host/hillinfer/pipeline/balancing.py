"""Keeping host and device equally long at work: the split of the scoring follows β while running (paper §APP).

A step's paths are what they are in the formula. The host's: scoring its tiles, attending what is in DRAM. The device's:
scoring its tiles, reading the selected rows that are cold, attending those. Rates come from the calibration and are
refreshed by every step; which tokens are selected where is measured and not assumed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch

from hillinfer.calibration.file import find
from hillinfer.calibration.fingerprint import fingerprint
from hillinfer.calibration.rates import (
    Load,
    Rates,
    Shares,
    Times,
    balanced_share,
    beta_two_hop,
    share_of,
)
from hillinfer.config import StoreSettings, parse_balance
from hillinfer.csd.contract import Counters
from hillinfer.errors import CalibrationError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.chosen import Spent
from hillinfer.store.split import Split

logger = logging.getLogger(__name__)

_FRESH = 1 / 16  # what a step counts for in the averages, once there have been so many
_WARM = 4  # steps that count for little: they fill buffers and page tables, and the split does not follow them
_USUAL = 8192  # tokens of a context whose α stands for all before the first step


@dataclass
class Flow:
    """Bytes of rows and the seconds they took; as a running average or of one step."""

    nbytes: float = 0.0
    seconds: float = 0.0

    def add(self, nbytes: float, seconds: float) -> None:
        self.nbytes += nbytes
        self.seconds += seconds

    def blend(self, step: Flow, weight: float) -> None:
        """Take a step into the average."""
        self.nbytes += weight * (step.nbytes - self.nbytes)
        self.seconds += weight * (step.seconds - self.seconds)

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

    def blend(self, step: Flows, weight: float) -> None:
        for name, flow in vars(self).items():
            flow.blend(getattr(step, name), weight)


class Balance:
    """Measures the steps of an engine, and leans the split to where both paths end together.

    rates   to begin with; None: the split stays as it is
    """

    def __init__(self, split: Split, rates: Rates | None, row_bytes: int) -> None:
        self.split, self._rates, self._row_bytes = split, rates, row_bytes
        self._step, self._average, self._steps = Flows(), Flows(), 0
        self._scanned = (0, 0.0)
        self._helped = 0.0  # tokens of the device's share that the host scored in this step
        self.last = Times(0.0, 0.0)
        """Seconds of the last step's two paths."""

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
        so far makes it, if that is less.
        """
        self._step.attended.add(spent.near * self._row_bytes, spent.attending)
        if cold:
            nbytes, reading = cold * self._row_bytes, spent.reading
            if not spent.waited:
                reading = min(reading, nbytes / self._average.read.rate(nbytes / reading))
            self._step.read.add(nbytes, reading)
            self._step.attended_cold.add(nbytes, spent.attending_cold)

    def restart(self) -> None:
        """Forget the averages: the next step is the first."""
        self._steps = 0

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
            self._average = Flows()
        since = self._steps - (_WARM if self._steps >= _WARM else 0)
        self._average.blend(step, max(_FRESH, 1 / (since + 1)))
        self.last = step.times
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
        """Seconds of a step's two paths, running averages."""
        return self._average.times

    @property
    def error(self) -> float | None:
        """|T_cpu − T_csd| / max; None before a step was measured."""
        return self.times.error if self._steps else None

    @property
    def host_share(self) -> float | None:
        """Share of the tokens that the host scores, the device tier's included."""
        host, device = self._average.host.nbytes, self._average.device.nbytes
        return host / (host + device) if host + device else None

    def rates(self) -> Rates:
        """As measured so far, the calibration's where nothing was."""
        start, average = self._rates or Rates(1.0, 1.0, 1.0, 1.0), self._average
        return Rates(
            average.host.rate(start.f_c),
            average.device.rate(start.f_s),
            average.attended.rate(start.b_c),
            average.read.rate(start.b_s),
        )

    @property
    def load(self) -> Load:
        """What a step has to do, and which of the selected rows were where: running averages."""
        average = self._average
        return Load(average.host.nbytes + average.device.nbytes, average.attended.nbytes, average.read.nbytes)

    def formula_share(self) -> float:
        """The host's share by the formula, from measured rates and measured shares of selected tokens."""
        return balanced_share(self.rates(), self.load, two_hop=True)


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
