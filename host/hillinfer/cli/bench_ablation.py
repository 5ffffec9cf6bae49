"""``hillinfer bench ablation``: what each part of the design is worth."""

from __future__ import annotations

from typing import Annotated

import typer

from hillinfer.cli.bench import (
    REPORTS,
    ColdDir,
    Text,
    bench_app,
    document_tokens,
    percent,
    progress,
    show_table,
    table_of,
    write_result,
)
from hillinfer.cli.console import human_bytes, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.errors import SettingError


@bench_app.command("ablation")
def ablation_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    tokens: Annotated[int, typer.Option(help="Context length, before the decoded steps.")] = 8192,
    alpha: Annotated[float, typer.Option(help="Share of the tokens attended per step.")] = 0.1,
    hot: Annotated[
        str, typer.Option(help="DRAM for the hot pool: with all of the KV in it there is no difference.")
    ] = "20%",
    text: Text = None,
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "ablation.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """The parts of the design one after the other: near-data scoring (HIE), placement (HKM), the pipeline (APP)."""
    if tokens < 1 or not 0 < alpha <= 1:
        raise SettingError("the ablation needs at least 1 token, and an alpha above 0 up to 1")
    from hillinfer.bench import ablation
    from hillinfer.models import load

    chosen = ablation.variants(hot, cold_dir)
    loaded = load(model)
    ids = document_tokens(loaded.tokenizer, text, tokens + ablation.STEPS)
    with progress() as say:
        rows = ablation.run(loaded.model, ids, tokens, alpha, chosen, say)
    result = ablation.as_dict(rows, {"model": loaded.name, "tokens": tokens, "alpha": alpha, "hot": hot})
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    table = table_of(
        f"{loaded.name}, {tokens:,} tokens, α = {alpha:g}, hot {hot}",
        "ms: a decode step, median, in turns",
        *("variant", "ms", "p95", "× stock", "hit", "moved", "read/token"),
    )
    for row in rows:
        table.add_row(
            row.label,
            f"{row.ms:.1f}",
            f"{row.p95_ms:.1f}",
            f"{row.times_stock:.2f}",
            percent(row.hot_hit_rate),
            percent(row.moved_fraction),
            "–" if row.cold_read_bytes_per_token is None else human_bytes(row.cold_read_bytes_per_token),
        )
    show_table(table)
