"""What ``hillinfer eval`` shows: the table, and what it says about retrieval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hillinfer.cli.bench import figure, show_table, table_of
from hillinfer.cli.console import human_bytes, stdout

if TYPE_CHECKING:
    from hillinfer.evaluation.results import Results, Retrieval, Row


def show_results(results: Results) -> None:
    """The table, and what it says about retrieval."""
    table = table_of(
        results.model,
        "difference: to the full cache on the same items, with its 95 % interval; *: of fewer than three texts, and "
        "about these alone; NLL and KL in nats per token of the right answer; fast: in DRAM and on the device; (…): "
        "the full cache itself scores under 50 %",
        "task", "policy", "context", "score", "difference", "interval", "NLL", "KL", "items", "fast", "cold", words=2,
    )  # fmt: skip
    rows = results.rows
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        last = following is None or (following.task, following.context) != (row.task, row.context)
        table.add_row(*cells(row), end_section=last)
    show_table(table)
    for note in dict.fromkeys((row.contender, row.note) for row in rows if row.note):
        stdout().print(f"undefined: {note[0]}: {note[1]}", soft_wrap=True)
    for task, cut in {row.task: row.cut for row in rows if row.cut}.items():
        stdout().print(f"{task}: {cut} prompts were cut to fit")
    for line in retrieval_lines(rows, results.retrieval):
        stdout().print(line)


def cells(row: Row) -> list[str]:
    """A row of the table, as words."""
    if row.nll is None or row.fast_bytes is None or row.cold_bytes is None:
        return [row.task, row.contender, str(row.context), "undefined"]
    score = figure(row.score, ".1%")
    return [
        row.task,
        row.contender,
        str(row.context),
        score if row.counts or row.score is None else f"({score})",
        figure(row.difference, "+.1%"),
        "–" if row.interval is None else f"{row.interval[0]:+.1%} … {row.interval[1]:+.1%}{few_texts(row)}",
        f"{row.nll:.3f}",
        figure(row.kl, ".4f"),
        str(row.items),
        human_bytes(row.fast_bytes),
        human_bytes(row.cold_bytes),
    ]


def retrieval_lines(rows: list[Row], together: list[Retrieval]) -> list[str]:
    """Of each policy: on how many retrieval rows that count it is not told apart from the full cache; all together."""
    lines = []
    for contender in dict.fromkeys(row.contender for row in rows if row.policy != "full"):
        counted = [row for row in rows if row.contender == contender and row.retrieval and row.counts]
        score = sum(row.interval is not None and row.interval[1] >= 0 for row in counted)
        nll = sum(row.nll_interval is None or row.nll_interval[0] <= 0 for row in counted)
        if counted:
            lines.append(
                f"{contender}: of {len(counted)} retrieval rows that count, the 95 % interval allows for no loss of "
                f"score on {score}, of NLL on {nll}{_together(counted[0], together)}"
            )
    return lines


def few_texts(row: Row) -> str:
    """The mark of intervals that are only about the texts that were asked about."""
    return "*" if row.interval_of == "items" and row.policy != "full" else ""


def _together(row: Row, together: list[Retrieval]) -> str:
    all_of = next((each for each in together if (each.policy, each.budget) == (row.policy, row.budget)), None)
    if all_of is None:
        return ""
    low, high = all_of.interval
    return f"; on all {all_of.items} items together {all_of.difference:+.1%} ({low:+.1%} … {high:+.1%})"
