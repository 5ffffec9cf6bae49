"""``hillinfer bench scorer``: how fast keys are scored, beside what bounds it and beside torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hillinfer.cli.bench import (
    REPORTS,
    bench_app,
    figure,
    percent,
    progress,
    show_summary,
    show_table,
    table_of,
    whole_numbers,
    write_result,
)
from hillinfer.cli.console import stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.config import parse_size
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.bench.scorer import Figure


@bench_app.command("scorer")
def scorer_command(
    formats: Annotated[str, typer.Option(help="Key formats: int8, int4, fp16.")] = "int8,int4,fp16",
    groups: Annotated[str, typer.Option(help="Queries per KV head.")] = "1,3,4,8",
    dims: Annotated[str, typer.Option(help="Dimensions of a head.")] = "64,128",
    threads: Annotated[str, typer.Option(help="Threads that share a scan.")] = "1,2",
    size: Annotated[str, typer.Option(help="Of the keys; far more than the processor's caches hold.")] = "512MiB",
    rounds: Annotated[int, typer.Option(help="How often all keys are scored for a figure.")] = 5,
    torch: Annotated[bool, typer.Option(help="Compare with torch's products of the same keys.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="64 MiB, 2 rounds, d 128, one thread: a first look.")] = False,
    variant: Annotated[str, typer.Option(help="Instruction set; default: the best this processor has.")] = "",
    output: Output = REPORTS / "scorer.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """GB/s of keys by format, beside a memory-read bound of the same run, the core's own limit, and torch.

    Few queries per KV head are bound by memory: their share of the read bound counts. Many are bound by the core:
    each 64 bytes of INT8 keys (32 of INT4) take a product with every query, and how many of these a core does is
    measured too. Times are of short windows and their lower decile counts, so that ratios hold on a busy machine, too.
    """
    nbytes = parse_size(size)
    if nbytes is None:
        raise SettingError(f"cannot read --size {size}: write for example 512MiB")
    from hillinfer import _native
    from hillinfer.bench import scorer

    if variant and variant not in _native.variants():
        raise SettingError(f"no variant {variant!r} here: use {', '.join(_native.variants())}")
    settings = scorer.Settings(
        formats=[each.strip() for each in formats.split(",") if each.strip()],
        groups=whole_numbers(groups, "groups"),
        dims=[128] if quick else whole_numbers(dims, "dims"),
        threads=[1] if quick else whole_numbers(threads, "threads"),
        nbytes=64 << 20 if quick else nbytes,
        rounds=2 if quick else rounds,
        with_torch=torch,
    )
    usual = _native.variant()
    _native.use_variant(variant or usual)
    try:
        with progress() as say:
            figures = scorer.run(settings, say)
        result = scorer.as_dict(figures, settings)
    finally:
        _native.use_variant(usual)
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    _show(figures, result["variant"], settings.nbytes >> 20)
    show_summary(result["summary"])
    stdout().print(f"written: {output}")


def _show(figures: Sequence[Figure], variant: str, mib: int) -> None:
    table = table_of(
        f"scoring {mib} MiB of keys, {variant}",
        "GB/s of keys; core: what its products allow; in cache: the scorer without memory; "
        "over torch: its best format, its best of FP16, BF16 and FP32, its products alone",
        *("format", "dim", "queries", "threads", "GB/s", "read", "of read", "core", "in cache", "of the nearer"),
        *("Mkeys/s", "over torch", "held", "products"),
    )
    for each in figures:
        table.add_row(
            each.key_format,
            *(str(number) for number in (each.head_dim, each.group, each.threads)),
            f"{each.rate:.1f}",
            f"{each.read:.1f}",
            percent(each.share_of_read),
            figure(each.core, ".1f"),
            f"{each.cached:.1f}",
            percent(each.share_of_bound),
            f"{each.keys_per_s:.0f}",
            "" if each.over_torch is None else f"{each.over_torch:.1f} x {each.torch_format}",
            figure(each.over_torch_held, ".1f"),
            figure(each.over_torch_products, ".1f"),
        )
    show_table(table)
