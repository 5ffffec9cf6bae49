"""Quality against memory: one panel per context length, one mark per policy and budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hillinfer.bench.policies import FULL, Row
from hillinfer.errors import SettingError

_MARKS = "osD^v<>PX*hdp"
_FLOOR = 1e-5  # nats: below it a divergence is rounding, and a logarithm has no zero


def check_plot() -> None:
    """SettingError without the package that draws."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SettingError("the plot needs matplotlib: pip install 'hillinfer[figures]', or --plot ''") from None


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot, in the format that the file's ending names."""
    check_plot()
    from matplotlib import colormaps
    from matplotlib.figure import Figure  # without pyplot: no window system, no global state

    contexts = sorted({row.context for row in rows})
    names = [name for name in dict.fromkeys(row.policy for row in rows) if name != FULL]
    figure = Figure(figsize=(5.2 * len(contexts) + 1.8, 4.6), layout="constrained")
    panels = figure.subplots(1, len(contexts), sharey=True, squeeze=False)[0]
    for axes, context in zip(panels, contexts, strict=True):
        here = [row for row in rows if row.context == context and row.kl is not None]
        whole = next(row.fast_bytes for row in here if row.policy == FULL)
        for number, name in enumerate(names):
            mine = sorted((row for row in here if row.policy == name), key=lambda row: row.budget)
            if not mine:
                continue
            axes.plot(
                [(row.fast_bytes or 0) / (whole or 1) for row in mine],
                [max(row.kl or 0.0, _FLOOR) for row in mine],
                marker=_MARKS[number % len(_MARKS)],
                linestyle=":" if mine[0].drops else "-",
                color=colormaps["tab20"](number % 20),
                label=f"{name} (drops)" if mine[0].drops else name,
            )
        axes.set_yscale("log")
        axes.set_title(f"{context} tokens", fontsize="medium")
        axes.set_xlabel("in fast memory, share of the whole KV cache")
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("KL to the full cache, nats per token")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small")
    figure.savefig(path)
