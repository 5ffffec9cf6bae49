"""Every token of a run: pinned, hot, cold, selected; by layer and decode step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer.figures.canvas import WIDTH, style
from hillinfer.figures.numbers import count, percent
from hillinfer.figures.palette import INK
from hillinfer.figures.picture import Picture, Table
from hillinfer.simulation.trace import Positions, Trace

LAYERS = 6
"""Drawn: the first, the last, and some between."""
_BINS = 320
_STRENGTH = 2.5
"""Of a selected token beside one that is only kept: a tenth of the tokens is selected, and is what one looks for."""

_PINNED, _HOT, _FAST, _COLD = "#1c93a6", "#3b82d6", "#d9622b", "#d0417a"
"""Seen on light paper and on dark: a bitmap has no theme."""

Colours = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Kinds:
    """Bool [tokens] each: what a token is at one step in one layer. What is none of them is cold."""

    pinned: npt.NDArray[np.bool_]
    hot: npt.NDArray[np.bool_]
    selected_fast: npt.NDArray[np.bool_]
    selected_cold: npt.NDArray[np.bool_]


def kinds(places: Positions, step: int, layer: int) -> Kinds:
    """Of every token cached when the step began. Hot: in DRAM or on the device, for having been selected often."""
    hot = places.hot[step][layer]
    selected = np.zeros(len(hot), bool)
    chosen = places.selected[step][layer]
    selected[chosen[chosen < len(hot)]] = True
    recent = np.arange(len(hot)) >= places.pinned[step][layer]
    return Kinds(recent & ~selected, hot & ~recent & ~selected, selected & hot, selected & ~hot)


def picture(trace: Trace) -> Picture | None:
    """A map per layer, steps downwards; None without recorded positions."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    if trace.positions is None:
        return None
    layers = _spread(trace.layers)
    tokens = len(trace.positions.hot[-1][0])
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.95 * len(layers)), layout="constrained")
        panes = list(figure.subplots(len(layers), 1, squeeze=False, sharex=True).flat)
        for axes, layer in zip(panes, layers, strict=True):
            image = np.stack([_line(kinds(trace.positions, step, layer), tokens) for step in range(len(trace.steps))])
            axes.imshow(image, aspect="auto", interpolation="none", extent=(0, tokens, len(trace.steps) + 0.5, 0.5))
            axes.set_ylabel(f"layer {layer}")
            axes.set_yticks([1, len(trace.steps)])
            axes.grid(visible=False)
        panes[-1].set_xlabel("position in the context; downwards in every map: decode steps", loc="right")
        names = ((_FAST, "selected, in fast memory"), (_COLD, "selected, cold"), (_HOT, "hot"), (_PINNED, "recent"))
        patches = [Patch(color=colour, label=name) for colour, name in names]
        figure.legend(handles=patches, loc="outside upper left", ncols=4, labelcolor=INK)
    says = (
        f"{trace.model}, {trace.policy}, {count(trace.tokens)} tokens, {len(layers)} of {trace.layers} layers. "
        "Blank is cold. Vertical lines are tokens that stay selected, step after step."
    )
    return Picture("tokens", "Which tokens, in which tier", says, figure, _table(trace, trace.positions))


def _table(trace: Trace, places: Positions) -> Table:
    rows = []
    for layer in range(trace.layers):
        steps = [kinds(places, step, layer) for step in range(len(trace.steps))]
        shares = [
            float(np.mean([getattr(each, name).mean() for each in steps]))
            for name in ("pinned", "hot", "selected_fast", "selected_cold")
        ]
        rows.append((str(layer), *(percent(share, 1) for share in (*shares, 1 - sum(shares))), _stay(places, layer)))
    headings = ("layer", "pinned", "hot", "selected, in fast memory", "selected, cold", "cold", "selected again")
    title = "Share of the tokens, mean of the steps; selected again: of a step's selection, also in the next one's"
    return Table(headings, rows, words=0, title=title)


def _stay(places: Positions, layer: int) -> str:
    """How much of a selection is selected in the next step too."""
    sets = [step[layer] for step in places.selected]
    pairs = itertools.pairwise(sets)
    shares = [len(np.intersect1d(before, after)) / max(1, len(before)) for before, after in pairs]
    return percent(float(np.mean(shares)) if shares else None, 1)


def _spread(layers: int) -> Sequence[int]:
    return sorted({round(at) for at in np.linspace(0, layers - 1, min(LAYERS, layers))})


def _line(each: Kinds, tokens: int) -> Colours:
    """RGBA [bins, 4] of one step: in a bin, what is selected lies over what is kept, each as strong as its share."""
    from matplotlib.colors import to_rgb

    bins = min(_BINS, tokens)
    at = np.arange(len(each.hot)) * bins // tokens
    sizes = np.maximum(np.bincount(at, minlength=bins), 1)
    colour, alpha = np.zeros((bins, 3)), np.zeros(bins)
    for mask, name, strength in (
        (each.pinned, _PINNED, 0.45),
        (each.hot, _HOT, 0.45),
        (each.selected_fast, _FAST, _STRENGTH),
        (each.selected_cold, _COLD, _STRENGTH),
    ):
        over = np.minimum(1, strength * np.bincount(at[mask], minlength=bins) / sizes)
        under = alpha * (1 - over)
        total = over + under
        mixed = over[:, None] * np.array(to_rgb(name)) + under[:, None] * colour
        colour = np.divide(mixed, total[:, None], out=np.zeros_like(colour), where=total[:, None] > 0)
        alpha = total
    return np.concatenate([colour, alpha[:, None]], axis=1)
