"""``hillinfer bench big``: a KV cache larger than memory, every method within one DRAM budget."""

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
    write_result,
)
from hillinfer.cli.console import human_bytes, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.errors import SettingError, nearest

if TYPE_CHECKING:
    from hillinfer.bench.big.line import BigRow, Line

_EQUAL = {"": "", "alpha": "α", "mass": "mass"}
_LINES = "mha:8192:1:4,gqa:8192:1:4,mha:32768:1:4,gqa:32768:1:4,mha:8192:4:2,gqa:32768:4:2"


@bench_app.command("big")
def big_command(
    lines: Annotated[
        str,
        typer.Option(help="What to measure, by commas: shape (mha, gqa), tokens, batch and layers, with colons."),
    ] = _LINES,
    dram: Annotated[str, typer.Option(help="DRAM for each method: of the KV, its scoring copy included.")] = "25%",
    alpha: Annotated[float, typer.Option(help="Share of the tokens that HillInfer attends.")] = 0.1,
    copy: Annotated[
        str, typer.Option(help="HillInfer's scoring copy: int8, int4, projected/2, projected/4 or projected/8.")
    ] = "projected/4",
    rounds: Annotated[int, typer.Option(help="Rounds of 8 steps for every method in turn.")] = 7,
    short_model: Annotated[
        str, typer.Option(help="Whose queries and keys are used up to 8,192 tokens.")
    ] = "smollm2-135m-instruct",
    long_model: Annotated[str, typer.Option(help="Whose are used beyond.")] = "gemma-3-270m",
    text: Text = None,
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "big.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Decoding from a KV cache that is larger than memory: full offload, H2O, prefetch, LeoAM and HillInfer.

    No model computes: queries, keys and values are those of small real models on real text, arranged to the heads of a
    large one (docs/decisions/0042). So hit rates, captured attention and chunk bounds are measured, never imposed. They
    are captured once, in minutes, and kept in the user's cache. All methods use the same store and the same reads,
    which bypass the page cache, and take blocks of steps in turn. Baselines are shown at HillInfer's share of the
    tokens ([bold]equal α[/]) and at the budget with which they capture as much of the attention ([bold]equal mass[/]).

    It takes up to 26 GB in the cold folder. Quick: [cyan]hillinfer bench big --lines gqa:8192:1:4 --rounds 2[/]
    """
    from hillinfer.bench.big import line as big_line
    from hillinfer.bench.big import methods
    from hillinfer.bench.big import run as big
    from hillinfer.bench.captures import Capture, capture

    wanted = [_line(each) for each in lines.split(",")]
    shares = numbers(dram, "dram")
    if len(shares) != 1 or not 0 < shares[0] <= 1 or not 0 < alpha < 1 or rounds < 1:
        raise SettingError(
            "--dram is a share above 0% up to 100%, --alpha lies between 0 and 1, --rounds is at least 1"
        )
    if copy not in methods.COPIES:
        raise SettingError(f"unknown scoring copy {copy!r}{nearest(copy, list(methods.COPIES))}")
    effort = big_line.Effort(rounds=rounds, dram=shares[0], alpha=alpha, copy=copy)
    known: dict[int, Capture] = {}
    with progress() as say:

        def captured(context: int) -> Capture:
            if context not in known:
                known.clear()
                model = short_model if context <= 8192 else long_model
                known[context] = capture(model, lambda tokenizer, n: document_tokens(tokenizer, text, n), context, say)
            return known[context]

        def show(rows: list[BigRow]) -> None:
            if not as_json:
                show_table(_speed_table(rows))
                show_table(_traffic_table(rows))
                for each in big.ratios(rows):
                    over = ", ".join(f"{name} {ratio:.1f}" for name, ratio in each["over"].items())
                    stdout().print(f"times the step of {each['of']}: {over}")
                for row in rows:
                    if row.note:
                        stdout().print(f"not here: {row.method}: {row.note}")

        rows = big.run(wanted, effort, captured, cold_dir, say, show)
    settings = {"dram": effort.dram, "alpha": alpha, "rounds": rounds, "copy": copy, "steps": effort.steps}
    result = big.as_dict(rows, settings | {"models": [short_model, long_model]})
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    show_summary(result["summary"])


def _line(text: str) -> Line:
    from hillinfer.bench.arranging import GQA, MHA
    from hillinfer.bench.big.line import Line

    shapes = {"mha": MHA, "gqa": GQA}
    name, *sizes = text.strip().split(":")
    if name not in shapes:
        raise SettingError(f"unknown shape {name!r}{nearest(name, list(shapes))}")
    if len(sizes) != 3 or not all(size.isdigit() and int(size) for size in sizes):
        raise SettingError(f"cannot read the line {text!r}: write shape:tokens:batch:layers, mha:32768:1:4 say")
    context, sequences, layers = map(int, sizes)
    if layers < 2:  # who reads ahead does so for the next layer
        raise SettingError(f"the line {text!r} has one layer: two are the least, so that a layer can be read ahead")
    return Line(shapes[name], context, sequences, layers)


def _speed_table(rows: list[BigRow]) -> Table:
    first = rows[0]
    table = table_of(
        f"{first.shape}: {first.context:,} tokens, batch {first.sequences}, {first.layers} layers measured",
        "ms: a token's attention in one layer, the batch together, median; model: times all layers, per token of a "
        "sequence; reads: the same rows read with nothing else; mass: share of the attention captured",
        *("method", "equal", "attended", "mass", "ms", "p95", "model ms", "reads ms"),
        words=2,
    )
    for row in rows:
        if row.layer_ms is not None:
            table.add_row(
                row.method,
                _EQUAL[row.equal],
                percent(row.budget),
                figure(row.captured, ".3f"),
                figure(row.layer_ms, ".2f"),
                figure(row.p95_layer_ms, ".2f"),
                figure(row.model_ms, ".0f"),
                figure(row.reads_ms, ".2f"),
            )
    return table


def _traffic_table(rows: list[BigRow]) -> Table:
    table = table_of(
        "where it comes from, per token and layer",
        "DRAM: most that pool, index and a scoring copy that is counted took of the whole KV",
        *("method", "equal", "DRAM", "hit", "moved", "attended in DRAM", "read", "scored"),
        words=2,
    )
    for row in rows:
        if row.layer_ms is not None:
            table.add_row(
                row.method,
                _EQUAL[row.equal],
                percent(row.dram_share),
                percent(row.hot_hit_rate),
                percent(row.moved_fraction),
                human_bytes(row.hot_attended_bytes or 0),
                human_bytes(row.cold_read_bytes or 0),
                human_bytes(row.scored_bytes or 0),
            )
    return table
