"""Balance of the two paths of a step, by the paper's APP (algorithms.md §1): pure functions of four speeds.

    T_cpu = M_c/f_c + α_c·M_c/B_c        T_csd = M_s/f_s + α_s·M_s/B_s   (+ α_s·M_s/B_c when rows pass through the host)

M_c, M_s are the KV bytes of the tokens that host and device own for scoring, in rows as they are stored; every speed
is in such bytes per second, whatever format is scanned. α is the share of a side's tokens that is attended. It is one
number in the paper; here each side has its own (skewness correction): hot tokens are more often important than others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Speeds of one machine, geometry and device, bytes of KV rows per second.

    f_c, f_s   scoring by the host and by the device
    b_c        rows from DRAM to where they are attended (on a CPU: attending them in place)
    b_s        rows from the cold pool into DRAM
    """

    f_c: float
    f_s: float
    b_c: float
    b_s: float


@dataclass(frozen=True)
class Shares:
    """α of each side: attended tokens of the tokens it owns. 1 and more are possible where rows lie apart from keys."""

    host: float
    device: float

    @classmethod
    def even(cls, alpha: float) -> Shares:
        """Without correction."""
        return cls(alpha, alpha)


def beta_p2p(rates: Rates, alpha: Shares) -> float:
    """β = M_c/M_s at which both paths end together, cold rows going straight to where they are attended."""
    return (1 / rates.f_s + alpha.device / rates.b_s) / (1 / rates.f_c + alpha.host / rates.b_c)


def beta_two_hop(rates: Rates, alpha: Shares) -> float:
    """β at which both paths end together, cold rows passing through the host's memory."""
    device = 1 / rates.f_s + alpha.device / rates.b_s + alpha.device / rates.b_c
    return device / (1 / rates.f_c + alpha.host / rates.b_c)


@dataclass(frozen=True)
class Times:
    """Seconds of the two paths."""

    cpu: float
    csd: float

    @property
    def error(self) -> float:
        """|T_cpu − T_csd| / max: 0 when both end together."""
        longer = max(self.cpu, self.csd)
        return abs(self.cpu - self.csd) / longer if longer else 0.0


@dataclass(frozen=True)
class Load:
    """What a step has to do, bytes of rows: all tokens, those attended out of DRAM, those read from the cold pool.

    Where a row lies and who scores its key are two things: ``hot`` and ``cold`` do not change with the split.
    """

    total: float
    hot: float
    cold: float


def predict(rates: Rates, load: Load, host: float, *, two_hop: bool) -> Times:
    """Both paths when the host scores the share ``host`` of all bytes."""
    cpu = host * load.total / rates.f_c + load.hot / rates.b_c
    csd = (1 - host) * load.total / rates.f_s + load.cold / rates.b_s
    return Times(cpu, csd + (load.cold / rates.b_c if two_hop else 0.0))


def balanced_share(rates: Rates, load: Load, *, two_hop: bool) -> float:
    """The host's share M_c/(M_c + M_s) at which both paths end together; 0 or 1 where one side is too slow for that.

    This is β/(1 + β) of the formulas above with α_c = hot/M_c and α_s = cold/M_s, solved for M_c: the measured shares
    of selected tokens depend on the split, so that the formula alone is a fixed point to be found.
    """
    none = predict(rates, load, 0.0, two_hop=two_hop)
    return even_share(rates, load.total, none.cpu, none.csd - load.total / rates.f_s)


def even_share(rates: Rates, total: float, host: float, device: float) -> float:
    """The host's share at which both paths end together, where each does something else besides its scoring.

    total          bytes of rows of all tokens
    host, device   seconds of that, whatever the split: as measured, it has what a step costs however little it does,
                   which α/B has not
    """
    if total <= 0:
        return 0.0
    share = (total / rates.f_s + device - host) / (total * (1 / rates.f_c + 1 / rates.f_s))
    return min(max(share, 0.0), 1.0)


def share_of(beta: float) -> float:
    """M_c/(M_c + M_s) of β = M_c/M_s."""
    return beta / (1 + beta)


def beta_of(share: float) -> float:
    """β = M_c/M_s of the host's share; infinite where the host has all."""
    return share / (1 - share) if share < 1 else float("inf")
