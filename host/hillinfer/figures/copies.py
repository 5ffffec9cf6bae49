"""What ranking by a small scoring copy costs in quality."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import form, percent
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Copies


def picture(report: Copies) -> Picture:
    """KL over the copy's size, a line per text and share of the tokens."""
    curves = dict.fromkeys((text, row.alpha) for row in report.rows for text in row.kl_of_text)
    with style():
        figure, [axes] = panels(height=3.8)
        for number, (text, alpha) in enumerate(curves):
            mine = [row for row in report.rows if row.alpha == alpha and text in row.kl_of_text]
            ours = sorted((row for row in mine if "raw" not in row.copied), key=lambda row: row.kv_share)
            raw = [row for row in mine if "raw" in row.copied]
            how = look(number)
            label = f"{text}, α = {alpha:.0%}"
            axes.plot([row.kv_share for row in ours], [row.kl_of_text[text] for row in ours], label=label, **how)
            axes.plot(
                [row.kv_share for row in raw],
                [row.kl_of_text[text] for row in raw],
                **(how | {"linestyle": "none", "marker": "x"}),
                markersize=8,
                markeredgewidth=2,
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        shares = sorted({row.kv_share for row in report.rows if row.kv_share})
        axes.set_xticks(shares, [percent(share, 1) for share in shares])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("the scoring copy, of the FP16 KV cache (x: INT8 by the paper's raw sum)", loc="right")
        axes.set_ylabel("KL to the full cache, nats per token")
        legend_above(figure, axes, columns=2)
    says = "The divergence from the full cache, of each scoring copy and text; smaller copies rank less well."
    return Picture("copies", "Scoring copies", says, figure, table(report))


def table(report: Copies) -> Table:
    """Copies down; texts and shares of the tokens across."""
    columns = list(dict.fromkeys((text, row.alpha) for row in report.rows for text in row.kl_of_text))
    rows = []
    for copied in dict.fromkeys(row.copied for row in report.rows):
        mine = [row for row in report.rows if row.copied == copied]
        cells = []
        for text, alpha in columns:
            found = [row.kl_of_text[text] for row in mine if row.alpha == alpha and text in row.kl_of_text]
            cells.append(form(found[0] if found else None, ".4f"))
        rows.append((copied, percent(mine[0].kv_share, 1), *cells))
    headings = ("copy", "of the KV", *(f"{text}, α = {alpha:.0%}" for text, alpha in columns))
    return Table(headings, rows, title="KL to the full cache, nats per token")
