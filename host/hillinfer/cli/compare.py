"""``hillinfer compare``: results of several evaluations in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.cli.bench import figure, show_table, table_of
from hillinfer.cli.console import human_bytes, stdout, write_json
from hillinfer.cli.eval_table import few_texts
from hillinfer.cli.options import AsJson, Debug

if TYPE_CHECKING:
    from hillinfer.evaluation.comparison import Change
    from hillinfer.evaluation.results import Row


def compare_command(
    files: Annotated[
        list[Path], typer.Argument(help="What hillinfer eval wrote; the first is what others are held against.")
    ],
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Results beside each other: scores, differences with 95 % intervals, and the memory each used.

    "to full" is the difference to the full cache of the same file. "to the first file" is what changed from there, by
    the same items where both files have them; where they don't, the samples are compared as wholes and marked with ~.
    Intervals are made anew from the files' items; * marks those of fewer than three texts, which are about these alone.
    """
    from hillinfer.evaluation.comparison import change
    from hillinfer.evaluation.results import read_results
    from hillinfer.evaluation.rows import with_intervals

    results = [with_intervals(read_results(path)) for path in files]
    names = [f"{number}: {each.model}" for number, each in enumerate(results, 1)]
    order = {key: place for place, key in enumerate(dict.fromkeys(_key(row) for each in results for row in each.rows))}
    lines: list[tuple[int, int, Row, Change | None]] = [
        (order[_key(row)], number, row, change(results[0], each, row) if number else None)
        for number, each in enumerate(results)
        for row in each.rows
    ]
    lines.sort(key=lambda line: line[:2])
    if as_json:
        write_json({"files": [str(path) for path in files], "rows": [_as_dict(files, line) for line in lines]})
        return
    table = table_of(
        "results",
        "to full: of the same file; *: of fewer than three texts, and about these alone; ~: not the same items, so not "
        "paired; NLL in nats per token of the right answer; fast: in DRAM and on the device",
        "task", "policy", "file", "context", "score", "to full", "interval", "NLL to full",
        "to the first file", "interval", "NLL", "items", "fast", "cold", words=3,
    )  # fmt: skip
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        table.add_row(*_cells(names, line), end_section=following is None or following[0] != line[0])
    show_table(table, width=200)
    for name, path in zip(names, files, strict=True):
        stdout().print(f"{name}: {path}", soft_wrap=True)


def _key(row: Row) -> tuple[str, int, str, float]:
    return row.task, row.context, row.policy, row.budget


def _cells(names: list[str], line: tuple[int, int, Row, Change | None]) -> list[str]:
    _, number, row, changed = line
    begin = [row.task, row.contender, names[number], str(row.context)]
    if row.fast_bytes is None or row.cold_bytes is None:
        return [*begin, "undefined"]
    score = figure(row.score, ".1%")
    return [
        *begin,
        score if row.counts or row.score is None else f"({score})",
        figure(row.difference, "+.1%"),
        _interval(row.interval, "+.1%") + few_texts(row),
        figure(row.nll_difference, "+.3f"),
        *_changed(changed),
        str(row.items),
        human_bytes(row.fast_bytes),
        human_bytes(row.cold_bytes),
    ]


def _changed(changed: Change | None) -> list[str]:
    if changed is None:
        return ["", "", ""]
    mark = "" if changed.paired else "~"
    nll = f"{mark}{changed.nll:+.3f}"
    return [mark + figure(changed.score, "+.1%"), _interval(changed.score_interval, "+.1%"), nll]


def _interval(interval: tuple[float, float] | None, form: str) -> str:
    return "–" if interval is None else f"{interval[0]:{form}} … {interval[1]:{form}}"


def _as_dict(files: list[Path], line: tuple[int, int, Row, Change | None]) -> dict[str, Any]:
    from dataclasses import asdict

    _, number, row, changed = line
    return {"file": str(files[number]), **row.model_dump(), "change": None if changed is None else asdict(changed)}
