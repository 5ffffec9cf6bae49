"""``hillinfer bench copies``: what ranking by a small scoring copy costs in quality."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hillinfer.cli.bench import (
    REPORTS,
    ColdDir,
    bench_app,
    numbers,
    percent,
    progress,
    show_table,
    table_of,
    write_result,
)
from hillinfer.cli.console import stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.config import SCORING_COPIES
from hillinfer.errors import DocumentError, SettingError, nearest

if TYPE_CHECKING:
    import torch

    from hillinfer.bench.copies import Row

_CHARACTERS = 16  # of a text per token wanted: more than any tokenizer takes


@bench_app.command("copies")
def copies_command(
    model: Annotated[list[str] | None, typer.Option(help="As in generate; may be given several times.")] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="A UTF-8 text; may be given several times. Default: the English text in CPython."),
    ] = None,
    tokens: Annotated[int, typer.Option(help="Context length, the decoded steps included.")] = 8192,
    steps: Annotated[int, typer.Option(help="Decoded tokens per text.")] = 64,
    copies: Annotated[str, typer.Option(help="Scoring copies by commas; default: all that are kept in memory.")] = "",
    alphas: Annotated[str, typer.Option(help="Shares of the tokens attended per step, by commas.")] = "0.05,0.1,0.2",
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "copies.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """KL to the full cache of each scoring copy, teacher-forced on real texts; the paper's raw sum beside them.

    Quick: [cyan]hillinfer bench copies --tokens 2048 --steps 16 --alphas 0.1[/]
    """
    shares = numbers(alphas, "alphas")
    if steps < 1 or tokens <= steps or not all(0 < share <= 1 for share in shares):
        raise SettingError("bench copies needs steps of at least 1, more tokens than steps, and alphas above 0 up to 1")
    from hillinfer.bench import copies as bench
    from hillinfer.models import load

    chosen = [name.strip() for name in copies.split(",") if name.strip()] or bench.default_copies()
    for name in chosen:
        if name not in SCORING_COPIES:
            raise SettingError(f"unknown scoring copy {name!r}{nearest(name, SCORING_COPIES)}")
    rows: list[Row] = []
    written: dict[str, Any] = {}
    with progress() as say:
        for wanted in [None] if model is None else model:
            loaded = load(wanted)
            texts = {
                "CPython" if path is None else path.stem: _window(loaded.tokenizer, path, tokens)
                for path in ([None] if text is None else text)
            }
            rows += bench.compare(loaded.model, loaded.name, texts, steps, chosen, shares, cold_dir, say)
            # After every model: an hour's figures must not be lost with the next one's.
            written = bench.as_dict(rows, {"tokens": tokens, "steps": steps, "alphas": shares})
            write_result(output, written)
    if as_json:
        write_json(written)
        return
    for name in dict.fromkeys(row.model for row in rows):
        show_table(
            _table([row for row in rows if row.model == name], shares, f"{name}, {tokens} tokens, {steps} steps")
        )
    stdout().print(f"written: {output}")


def _window(tokenizer: Any, path: Path | None, tokens: int) -> torch.Tensor:
    """The first tokens int64 [1, tokens] of a text."""
    from hillinfer.documents import default_document, read_prompt_file

    body = default_document(tokenizer, tokens=2 * tokens) if path is None else read_prompt_file(path)
    ids: torch.Tensor = tokenizer(body[: _CHARACTERS * tokens], return_tensors="pt", verbose=False)["input_ids"]
    if ids.shape[1] < tokens:
        raise DocumentError(f"{path or 'the text'} has {ids.shape[1]} tokens and the benchmark needs {tokens}")
    return ids[:, :tokens]


def _table(rows: Sequence[Row], alphas: Sequence[float], title: str) -> Table:
    texts = list(rows[0].kl_of_text)
    table = table_of(
        title,
        "KL to the full cache in nats per token; of the KV: the copy over keys and values in FP16",
        *("copy", "of the KV", *(f"{text} {alpha:.0%}" for text in texts for alpha in alphas)),
    )
    for copy in dict.fromkeys(row.copy for row in rows):
        mine = {row.alpha: row for row in rows if row.copy == copy}
        figures = [f"{mine[alpha].kl_of_text[text]:.4f}" for text in texts for alpha in alphas]
        table.add_row(copy, percent(mine[alphas[0]].kv_share), *figures)
    return table
