"""``hillinfer bench decode``: how fast, how good, and how long until the first token, beside the stock cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hillinfer.cli.bench import (
    REPORTS,
    ColdDir,
    Text,
    bench_app,
    document_tokens,
    figure,
    numbers,
    percent,
    progress,
    show_summary,
    show_table,
    table_of,
    whole_numbers,
    write_result,
)
from hillinfer.cli.console import human_bytes, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.bench.decode import Plan, Result


@bench_app.command("decode")
def decode_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    contexts: Annotated[
        str, typer.Option(help="Lengths of real context, by commas; the others are held against the shortest.")
    ] = "64,1024,4096,8192",
    synthetic: Annotated[
        str, typer.Option(help="Lengths of context made of random numbers, for times alone; '' for none.")
    ] = "32768",
    alphas: Annotated[str, typer.Option(help="Shares of the tokens attended per step, by commas.")] = "1,0.2,0.1,0.05",
    alpha: Annotated[float, typer.Option(help="The share whose ratios count; quality is measured at it.")] = 0.1,
    hot: Annotated[str, typer.Option(help="DRAM for the lines with a part of the KV in it.")] = "20%",
    tokens: Annotated[int, typer.Option(help="Context of quality and prefill, the decoded tokens included.")] = 8192,
    steps: Annotated[int, typer.Option(help="Decoded tokens per passage, for quality.")] = 64,
    passages: Annotated[
        int, typer.Option(help="Passages of the text, for quality; 0: neither quality nor prefill.")
    ] = 3,
    text: Text = None,
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "decode.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """A real model decodes: time per step, KL to the full cache, prefill; HillInfer beside what transformers offers.

    Every way to decode holds the same context, and takes blocks of steps in turn. [bold]added[/] is what the context
    adds to a step, over that of the shortest one: the model's own work is the same for all. Caches that this machine
    cannot have say why.

    Quick: [cyan]hillinfer bench decode --contexts 64,1024 --synthetic '' --passages 0[/]
    """
    from hillinfer.bench import decode

    plan = decode.Plan(
        contexts=_lengths(contexts, "contexts"),
        synthetic=_lengths(synthetic, "synthetic"),
        alphas=numbers(alphas, "alphas"),
        alpha=alpha,
        hot=hot,
        tokens=tokens,
        decoded=steps,
        passages=passages,
    )
    if steps < 1 or passages < 0 or tokens <= steps or not plan.contexts:
        raise SettingError("bench decode needs a context, at least 1 step, passages of 0 or more, and tokens > steps")
    if not all(0 < each <= 1 for each in (*plan.alphas, alpha)) or alpha not in plan.alphas:
        raise SettingError("alphas are shares above 0 up to 1, and --alpha is one of them")
    StoreSettings(hot_bytes=Budget.parse(hot))  # raises for one that cannot be, before a model is loaded
    from hillinfer.models import load

    loaded = load(model)
    ids = document_tokens(loaded.tokenizer, text, plan.longest)
    with progress() as say:
        result = decode.run(loaded.model, ids, plan, cold_dir, say)
    written = decode.as_dict(result, plan, {"model": loaded.name})
    write_result(output, written)
    if as_json:
        write_json(written)
        return
    show_table(_speed_table(result, loaded.name))
    for note in dict.fromkeys(f"{row.label}: {row.note}" for row in result.speed if row.note):
        stdout().print(f"not here: {note}")
    if result.quality:
        show_table(_quality_table(result, plan))
        show_table(_prefill_table(result))
    show_summary(written["summary"])


def _lengths(text: str, option: str) -> list[int]:
    lengths = whole_numbers(text, option)
    if any(length < 1 for length in lengths):
        raise SettingError(f"--{option} is {text!r}: a context has at least 1 token")
    return lengths


def _speed_table(result: Result, model: str) -> Table:
    table = table_of(
        f"{model}: a decode step",
        "medians of one run, in turns; × stock within a context; synthetic: random keys, no claim of quality",
        *("context", "method", "ms", "p95", "× stock", "added ms", "× stock's", "hit", "in DRAM", "read/token"),
        words=2,
    )
    last = None
    for row in result.speed:
        if row.ms is None:
            continue
        if last not in (None, row.context):
            table.add_section()
        first, last = last != row.context, row.context
        context = f"{row.context:,}{' synthetic' if row.synthetic else ''}" if first else ""
        table.add_row(
            context,
            row.label,
            figure(row.ms, ".1f"),
            figure(row.p95_ms, ".1f"),
            figure(row.ratio, ".2f"),
            figure(row.added_ms, ".1f"),
            figure(row.added_ratio, ".2f"),
            percent(row.hot_hit_rate),
            "–" if row.hot_bytes is None else human_bytes(row.hot_bytes),
            "–" if row.cold_read_bytes_per_token is None else human_bytes(row.cold_read_bytes_per_token),
        )
    return table


def _quality_table(result: Result, plan: Plan) -> Table:
    table = table_of(
        f"quality at {plan.tokens:,} tokens, {plan.passages} passages of {plan.decoded} steps, hot {plan.hot}",
        "KL(full cache ‖ method) in nats per token",
        *("method", "KL", "by passage", "same token", "hit", "moved", "read/token"),
    )
    for row in result.quality:
        table.add_row(
            row.label,
            f"{row.kl:.5f}",
            " / ".join(f"{each:.4f}" for each in row.kl_per_passage),
            f"{row.agreement:.1%}",
            percent(row.hot_hit_rate),
            percent(row.moved_fraction),
            human_bytes(row.cold_read_bytes_per_token),
        )
    return table


def _prefill_table(result: Result) -> Table:
    table = table_of(
        "reading a prompt, chunk by chunk in turns", "", "method", "tokens", "seconds", "tokens/s", "first token after"
    )
    for row in result.prefill:
        table.add_row(
            row.label, f"{row.tokens:,}", f"{row.seconds:.1f}", f"{row.tokens_per_s:.0f}", f"{row.first_token_s:.2f} s"
        )
    return table
