"""What steps of other policies cost: each its own measurements, at two lengths of a random context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hillinfer.simulation.measuring.engine import INDEX_PARTS, EngineProbe
from hillinfer.simulation.measuring.kept import KeptProbe
from hillinfer.simulation.measuring.number import measured
from hillinfer.simulation.measuring.probe import Probe

_TINY = 1e-12  # seconds: a difference of two times may come out below nothing on a busy machine


class Bare(NamedTuple):
    """A model without attention. floor: seconds of a step; layers; row_bytes: of a token's KV in one of them."""

    floor: float
    layers: int
    row_bytes: int


def kept_way(probes: Sequence[KeptProbe], bare: Bare) -> dict[str, Any]:
    """Of a policy that drops tokens; probes: at a short and at a long context."""
    near, far = probes
    how = f"steps at {near.tokens} and {far.tokens} random tokens, a fifth of them kept"
    return _by_rows((near, near.attended), (far, far.attended), bare, how)


def whole_way(probes: Sequence[EngineProbe], bare: Bare) -> dict[str, Any]:
    """Of attending to everything in the tiers, all of it in DRAM."""
    near, far = probes
    how = f"steps at {near.tokens} and {far.tokens} random tokens, all of them attended"
    return _by_rows((near, near.tokens), (far, far.tokens), bare, how)


def _by_rows(near: tuple[Probe, int], far: tuple[Probe, int], bare: Bare, how: str) -> dict[str, Any]:
    """Of steps that grow with the rows attended; each probe with how many those are."""
    floor, layers, row_bytes = bare
    short, long = near[0].median("step"), far[0].median("step")
    row = max(_TINY, (long - short) / (far[1] - near[1]) / layers)
    return {
        "layer": measured((short - floor) / layers - near[1] * row, how),
        "attend": measured(row_bytes / row, how),
    }


def indexed_way(
    probes: Sequence[EngineProbe], bare: Bare, whole: dict[str, Any], settle_token: float
) -> dict[str, Any] | None:
    """Of a policy with an index, all rows in DRAM; None for a model so small that every layer is attended whole.

    whole          what a layer takes that is attended whole, as some are
    settle_token   seconds per cached token behind a step, which are counted elsewhere
    """
    (near, far), (floor, layers, row_bytes) = probes, bare
    chosen = layers - near.whole_layers
    tokens = chosen * (far.tokens - near.tokens)
    if not chosen:
        return None

    def grows(*parts: str) -> float:
        return sum(far.median(part) - near.median(part) for part in parts)

    def per(seconds: float, name: str) -> float:
        return max(_TINY, seconds / max(1.0, far.median(name) - near.median(name)))

    token = max(_TINY, grows("select") / tokens)
    row = per(grows("locate", "place") - settle_token * tokens, "rows")
    head_row = per(grows("attend", "attend cold"), "head rows")
    wholly = near.whole_layers * (whole["layer"] + near.tokens * row_bytes / whole["attend"])
    rest = near.median("step") - floor - wholly - chosen * near.tokens * (token + settle_token)
    rest -= near.median("rows") * row + near.median("head rows") * head_row
    how = f"steps at {near.tokens} and {far.tokens} random tokens, and their parts ({', '.join(INDEX_PARTS)})"
    return {
        "layer": measured(rest / chosen, how),
        "token": measured(token, how),
        "row": measured(row, how),
        "attend": measured(row_bytes / head_row, how),
    }
