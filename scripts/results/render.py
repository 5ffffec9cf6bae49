"""The page of results from the measurements that are kept."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hillinfer.errors import SettingError
from hillinfer.figures import (
    ablation,
    balance,
    big,
    copies,
    decode,
    differences,
    fits,
    growth,
    io,
    kernel,
    memory,
    needles,
    paper,
    policies,
    reports,
    scorer,
    summary,
    tasks,
    validation,
)
from hillinfer.figures.numbers import percent
from hillinfer.figures.picture import Table
from hillinfer.page.contents import CHAPTERS
from hillinfer.page.sources import Source, find, report

BY_HAND = (
    report("memory.json", "pytest -s tests/integrations/test_memory_budget.py", reports.Memory),
    report("locality.json", "hillinfer bench decode", reports.Locality),
)
_NOT_SHOWN = ("timeline.json", "timeline-simulated.json")
_WORDS = 30
"""Characters from which on a cell is text."""
_DRAWERS = {
    "ablation": ablation,
    "balance": balance,
    "big": big,
    "copies": copies,
    "decode": decode,
    "differences": differences,
    "fits": fits,
    "growth": growth,
    "io": io,
    "kernel": kernel,
    "memory": memory,
    "needles": needles,
    "paper": paper,
    "policies": policies,
    "scorer": scorer,
    "summary": summary,
    "tasks": tasks,
    "validation": validation,
}


def sources() -> list[Source[Any]]:
    """Every report in JSON that the page of results can show."""
    known = {chapter.source.file: chapter.source for chapter in CHAPTERS}
    return [known[file] for file in known if file.endswith(".json") and file not in _NOT_SHOWN]


def missing(measured: Path) -> list[tuple[str, str]]:
    """Title and command of what the page could show and has not."""
    titles = {chapter.source.file: chapter.title for chapter in reversed(CHAPTERS)}
    return [(titles[each.file], each.command) for each in sources() if not (measured / each.file).exists()]


def render(measured: Path) -> str:
    """The page, in Markdown. SettingError for a measurement that cannot be read."""
    known: dict[str, Any] = {}
    for source in [*sources(), *BY_HAND]:
        found = find(source, measured)
        if found.broken:
            raise SettingError(f"{measured}: {found.problem} To make it anew: {source.command}")
        if found.content is not None and found.content.measured is None:
            raise SettingError(f"{measured / source.file} has no stamp: bring it here by make results FROM=…")
        known[source.file.removesuffix(".json").replace("-", "_")] = found.content
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"table": markdown, "share": percent}
    machines = Counter(content.measured.machine for content in known.values() if content is not None)
    usual = machines.most_common(1)[0][0] if machines else "none"
    environment.globals |= {"machine": usual, "draw": _DRAWERS, "missing": missing(measured)}
    text = environment.get_template("results.md.j2").render(known)
    return re.sub(r"\n{3,}", "\n\n", text)


def markdown(table: Table) -> str:
    """A table in Markdown: words to the left, figures to the right, HillInfer's rows in bold."""
    long = {at for row in table.rows for at, cell in enumerate(row) if len(cell) > _WORDS}
    sides = ["---" if at < table.words or at in long else "---:" for at in range(len(table.headings))]
    lines = [table.headings, sides]
    for row in table.rows:
        cells = [cell.replace("|", "\\|") for cell in row]
        if cells[0] == "hillinfer" or cells[0].startswith("hillinfer α=0.1, all"):
            cells[0] = f"**{cells[0]}**"
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
