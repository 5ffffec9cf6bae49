"""``hillinfer bench``: what its commands share. One file per command: ``bench_….py``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hillinfer.cli.console import stderr, stdout
from hillinfer.cli.output import folder
from hillinfer.errors import DocumentError, SettingError
from hillinfer.whole_file import write_whole

if TYPE_CHECKING:
    import torch

bench_app = typer.Typer(
    help="Benchmarks: each measures its methods side by side in one run, prints a table and writes JSON. Times depend "
    "on the machine and on what else it does: compare within one table.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

REPORTS = Path("build/reports")
"""Where the JSON goes unless told otherwise."""

ColdDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the cold files: on the disk that is to be measured.", callback=folder),
]
Text = Annotated[Path | None, typer.Option(help="A UTF-8 text; default: the English text in CPython.")]


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Says what is being done: in one line that changes on a terminal, else line by line."""
    console = stderr()
    with console.status("starting") as status:
        yield lambda doing: status.update(doing) if console.is_terminal else console.print(doing)


def document_tokens(tokenizer: Any, path: Path | None, tokens: int) -> torch.Tensor:
    """Tokens int64 [n] of a text, at least ``tokens`` of them."""
    from hillinfer.documents import default_document, read_prompt_file

    body = default_document(tokenizer, tokens=1 << 30) if path is None else read_prompt_file(path)
    ids: torch.Tensor = tokenizer(body, return_tensors="pt", verbose=False)["input_ids"][0]
    if len(ids) < tokens:
        raise DocumentError(f"the text has {len(ids)} tokens and the benchmark needs {tokens}: give --tokens or --text")
    return ids


def write_result(output: Path, result: dict[str, Any]) -> None:
    """The JSON file of a benchmark, its folder made where it is missing."""
    write_text(output, json.dumps(result, indent=1) + "\n")


def write_text(output: Path, text: str) -> None:
    """Any file of a benchmark, its folder made where it is missing."""
    try:
        write_whole(output, text)
    except OSError as error:
        raise SettingError(f"{output} cannot be written ({error.strerror}): name another with --output") from None


def numbers(text: str, option: str) -> list[float]:
    """Numbers between commas, none for an empty text; a percent sign divides by a hundred."""
    try:
        return [
            float(part.strip().removesuffix("%")) / (100 if part.strip().endswith("%") else 1)
            for part in text.split(",")
            if text.strip()
        ]
    except ValueError:
        raise SettingError(f"--{option} is {text!r}: write numbers with commas between them") from None


def whole_numbers(text: str, option: str) -> list[int]:
    """The same of whole numbers."""
    found = numbers(text, option)
    if not all(number.is_integer() for number in found):
        raise SettingError(f"--{option} is {text!r}: write whole numbers with commas between them")
    return [int(number) for number in found]


def table_of(title: str, caption: str, *headings: str, words: int = 1) -> Table:
    """An empty table whose first ``words`` columns are text, the others figures."""
    table = Table(title=title, caption=caption)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < words else "right", no_wrap=True)
    return table


def show_table(table: Table, width: int = 150) -> None:
    """A table on stdout, wide enough for its figures."""
    console = stdout()
    console.width = max(console.width, width)  # cut at 80 columns the figures are of no use
    console.print(table)


def show_summary(summary: dict[str, float | None]) -> None:
    """The figures that the project holds itself to, one a line."""
    for name, value in summary.items():
        stdout().print(f"{name:36} {figure(value, '.4g')}")


def percent(share: float | None) -> str:
    """A share for people."""
    return "–" if share is None else f"{share:.1%}"


def figure(value: float | None, form: str) -> str:
    """A number for people, or a dash."""
    return "–" if value is None else format(value, form)
