"""A decode step against the length of the context, HillInfer beside what transformers offers."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import NONE, count, form, percent, tokens
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Decode


def picture(report: Decode) -> Picture:
    """A line per way to decode; synthetic contexts are hollow marks."""
    rows = [row for row in report.speed if row.ms is not None]
    contexts = sorted({row.context for row in rows})
    with style():
        figure, [axes] = panels(height=4.6)
        for number, label in enumerate(_ours_first([row.label for row in rows])):
            mine = sorted((row for row in rows if row.label == label), key=lambda row: row.context)
            how = look(number)
            axes.plot([row.context for row in mine], [row.ms or 0 for row in mine], label=label, **how)
            made_up = [row for row in mine if row.synthetic]
            axes.plot(
                [row.context for row in made_up],
                [row.ms or 0 for row in made_up],
                **(how | {"linestyle": "none"}),
                markerfacecolor="white",
                markeredgewidth=1.4,
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(contexts, [tokens(context) for context in contexts])
        axes.set_xticks([], minor=True)
        plain_numbers(axes.yaxis)
        axes.set_xlabel("tokens in the context (hollow: random keys, a time only)", loc="right")
        axes.set_ylabel("a decode step, ms")
        legend_above(figure, axes, columns=2)
    longest = [row for row in rows if row.context == max(contexts, default=0)]
    quickest = min(longest, key=lambda row: row.ms or 0.0, default=None)
    says = (
        "Nothing was measured."
        if quickest is None
        else f"At {count(quickest.context)} tokens the quickest is {quickest.label}: {form(quickest.ms, '.0f')} ms"
        + (f", {form(quickest.ratio)} of the stock cache's step." if quickest.ratio is not None else ".")
    )
    return Picture("decode", "A decode step as the context grows", says, figure, table(report))


def table(report: Decode) -> Table:
    """ms per method and context, in brackets the ratio to the stock cache's; last what the longest real one adds."""
    contexts = sorted({row.context for row in report.speed})
    synthetic = {row.context for row in report.speed if row.synthetic}
    longest = max((context for context in contexts if context not in synthetic), default=0)
    rows = []
    for label in dict.fromkeys(row.label for row in report.speed if row.ms is not None):
        mine = {row.context: row for row in report.speed if row.label == label}
        cells = [NONE if context not in mine else _with(mine[context].ms, mine[context].ratio) for context in contexts]
        last = mine.get(longest)
        rows.append((label, *cells, NONE if last is None else _with(last.added_ms, last.added_ratio, ".1f")))
    headings = [f"{count(context)}{' (synthetic)' if context in synthetic else ''}" for context in contexts]
    title = "ms per step; in brackets: of the stock cache's"
    return Table(("method", *headings, f"added by {count(longest)}"), rows, title=title)


def _with(value: float | None, ratio: float | None, how: str = ".0f") -> str:
    return form(value, how) + (f" ({ratio:.2f})" if value is not None and ratio is not None else "")


def quality_table(report: Decode) -> Table:
    """KL to the full cache of HillInfer's rankings."""
    rows = [
        (
            row.label,
            form(row.kl, ".4f"),
            " / ".join(f"{each:.4f}" for each in row.kl_per_passage),
            percent(row.agreement, 1),
            percent(row.hot_hit_rate, 1),
            percent(row.moved_fraction, 1),
            NONE if row.cold_read_bytes_per_token is None else f"{row.cold_read_bytes_per_token / 2**20:.1f} MiB",
        )
        for row in report.quality
    ]
    headings = ("method", "KL", "by passage", "same token", "hot hit rate", "moved per step", "read per token")
    title = (
        f"Quality at {count(report.tokens)} tokens, {report.passages} passages of {report.decoded} teacher-forced "
        f"tokens, hot pool {report.hot}; KL to the full cache in nats per token"
    )
    return Table(headings, rows, title=title)


def prefill_table(report: Decode) -> Table:
    """How long a prompt takes."""
    rows = [
        (row.label, count(row.tokens), f"{row.seconds:.1f} s", f"{row.tokens_per_s:.0f}", f"{row.first_token_s:.1f} s")
        for row in report.prefill
    ]
    return Table(("method", "tokens", "time", "tokens/s", "first token after"), rows, title="Reading a prompt")


def _ours_first(labels: list[str]) -> list[str]:
    return sorted(dict.fromkeys(labels), key=lambda label: not label.startswith("hillinfer α=0.1"))
