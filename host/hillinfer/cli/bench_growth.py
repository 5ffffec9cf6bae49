"""``hillinfer bench growth``: what a longer context costs, and with which exponent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hillinfer.cli.bench import (
    REPORTS,
    ColdDir,
    Text,
    bench_app,
    document_tokens,
    figure,
    progress,
    show_table,
    table_of,
    whole_numbers,
    write_result,
    write_text,
)
from hillinfer.cli.console import stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import writable
from hillinfer.errors import SettingError


@bench_app.command("growth")
def growth_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    contexts: Annotated[
        str, typer.Option(help="Lengths of the context, by commas.")
    ] = "1024,2048,4096,8192,16384,32768",
    alpha: Annotated[float, typer.Option(help="Share of the tokens attended per step.")] = 0.1,
    text: Text = None,
    cold_dir: ColdDir = None,
    output: Annotated[
        Path, typer.Option(help="Where the JSON goes; the plot goes beside it.", callback=writable)
    ] = REPORTS / "growth.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Cost per token against the length of the context, beside the stock cache; exponent by least squares.

    The contexts are random numbers: times only. What a context adds to a step of 64 tokens is fitted, on logarithms.
    """
    lengths = whole_numbers(contexts, "contexts")
    if len(set(lengths)) < 2 or any(length <= 64 for length in lengths) or not 0 < alpha <= 1:
        raise SettingError("growth needs two different contexts above 64 tokens, and an alpha above 0 up to 1")
    from hillinfer.bench import growth
    from hillinfer.figures import growth as growing
    from hillinfer.figures.canvas import NoMatplotlib
    from hillinfer.figures.reports import Growth
    from hillinfer.models import load

    loaded = load(model)
    ids = document_tokens(loaded.tokenizer, text, 1024)
    with progress() as say:
        rows = growth.run(loaded.model, ids, lengths, alpha, cold_dir, say)
    result = growth.as_dict(rows, {"model": loaded.name, "alpha": alpha})
    write_result(output, result)
    try:
        picture = growing.picture(Growth.model_validate(result))
        write_text(output.with_suffix(".svg"), picture.file())
        drawn = f", {output.with_suffix('.svg')}"
    except NoMatplotlib:
        drawn = " (no plot: pip install 'hillinfer[figures]')"
    if as_json:
        write_json(result)
        return
    table = table_of(
        f"{loaded.name}: a decode step in a growing synthetic context",
        "added: to a step at 64 tokens; everything in DRAM",
        *("tokens", "method", "ms", "p95", "added ms"),
        words=2,
    )
    for row in rows:
        table.add_row(f"{row.context:,}", row.label, f"{row.ms:.1f}", f"{row.p95_ms:.1f}", figure(row.added_ms, ".2f"))
    show_table(table)
    for fit in growth.fits(rows):
        sure = "" if fit.error is None else f" ± {fit.error:.2f} (standard error, {fit.points} contexts)"
        stdout().print(f"{fit.label}: what a context adds grows with tokens^{figure(fit.exponent, '.2f')}{sure}")
    stdout().print(f"written: {output}{drawn}")
