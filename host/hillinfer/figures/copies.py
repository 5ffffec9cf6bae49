"""What ranking by a small scoring copy costs in quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import form, percent
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Copies, CopyRow


@dataclass(frozen=True)
class Curve:
    """A model on a text, at one share of the tokens attended."""

    model: str
    text: str
    alpha: float

    def kl(self, row: CopyRow) -> float | None:
        """Of a row; None for another curve's."""
        mine = (row.model, row.alpha) == (self.model, self.alpha)
        return row.kl_of_text.get(self.text) if mine else None


def picture(report: Copies) -> Picture:
    """KL over the copy's size, a line per model, text and share of the tokens."""
    with style():
        figure, [axes] = panels(height=3.8)
        for number, curve in enumerate(_curves(report)):
            mine = [(row, kl) for row in report.rows if (kl := curve.kl(row)) is not None]
            ours = sorted((row.kv_share, kl) for row, kl in mine if "raw" not in row.copied)
            raw = [(row.kv_share, kl) for row, kl in mine if "raw" in row.copied]
            how = look(number)
            axes.plot([at for at, _ in ours], [kl for _, kl in ours], label=_name(report, curve), **how)
            cross = how | {"linestyle": "none", "marker": "x", "markersize": 8, "markeredgewidth": 2}
            axes.plot([at for at, _ in raw], [kl for _, kl in raw], **cross)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        shares = sorted({round(row.kv_share, 3) for row in report.rows if row.kv_share})
        axes.set_xticks(shares, [percent(share, 1) for share in shares])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("the scoring copy, of the FP16 KV cache (x: INT8 by the paper's raw sum)", loc="right")
        axes.set_ylabel("KL to the full cache, nats per token")
        legend_above(figure, axes, columns=2)
    says = "The divergence from the full cache, of each scoring copy and text; smaller copies rank less well."
    return Picture("copies", "Scoring copies", says, figure, table(report))


def table(report: Copies) -> Table:
    """Copies down; models, texts and shares of the tokens across."""
    curves = _curves(report)
    rows = []
    for copied in dict.fromkeys(row.copied for row in report.rows):
        mine = [row for row in report.rows if row.copied == copied]
        known = [[kl for row in mine if (kl := curve.kl(row)) is not None] for curve in curves]
        cells = [form(found[0] if found else None, ".4f") for found in known]
        rows.append((copied, percent(mine[0].kv_share, 1), *cells))
    headings = ("copy", "of the KV", *(_name(report, curve) for curve in curves))
    return Table(headings, rows, title="KL to the full cache, nats per token")


def _curves(report: Copies) -> Sequence[Curve]:
    return list(dict.fromkeys(Curve(row.model, text, row.alpha) for row in report.rows for text in row.kl_of_text))


def _name(report: Copies, curve: Curve) -> str:
    several = len({row.model for row in report.rows}) > 1
    return f"{f'{curve.model}, ' if several else ''}{curve.text}, α = {curve.alpha:.0%}"
