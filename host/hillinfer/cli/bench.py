"""``hillinfer bench``: how good and how fast, beside the stock cache in the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hillinfer.cli.console import human_bytes, stderr, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.errors import DocumentError, SettingError

if TYPE_CHECKING:
    import torch

bench_app = typer.Typer(
    help="Benchmarks: each measures its methods side by side in one run, prints a table and writes JSON.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@bench_app.command("decode")
def decode_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    tokens: Annotated[int, typer.Option(help="Context length, the decoded steps included.")] = 8192,
    steps: Annotated[int, typer.Option(help="Decoded tokens per passage.")] = 64,
    passages: Annotated[int, typer.Option(help="Passages of the text, spread over it.")] = 3,
    alpha: Annotated[float, typer.Option(help="Share of the tokens attended per step.")] = 0.1,
    text: Annotated[Path | None, typer.Option(help="A UTF-8 text; default: the English text in CPython.")] = None,
    cold_dir: Annotated[Path | None, typer.Option(help="Folder of the cold files.")] = None,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/reports/decode.json"),
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Quality (KL to the full cache) and speed on real text, teacher-forced, beside the stock cache."""
    if steps < 1 or passages < 1 or tokens <= steps:
        raise SettingError("bench needs steps and passages of at least 1, and more tokens than steps")
    from hillinfer.bench import decode
    from hillinfer.models import load

    chosen = decode.cases(alpha)
    loaded = load(model)
    ids = document_tokens(loaded.tokenizer, text, tokens)
    console = stderr()
    with console.status("starting") as status:
        rows = decode.compare(
            loaded.model,
            decode.passages(ids, tokens, passages),
            steps,
            chosen,
            cold_dir,
            on_progress=lambda doing: status.update(doing) if console.is_terminal else console.print(doing),
        )
    settings = {"model": loaded.name, "tokens": tokens, "steps": steps, "passages": passages, "alpha": alpha}
    result = decode.as_dict(rows, settings)
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    show_table(_table(result))
    for name, value in result["summary"].items():
        stdout().print(f"{name:26} {'-' if value is None else format(value, '.4g')}")


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
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=1) + "\n")
    except OSError as error:
        raise SettingError(f"{output} cannot be written ({error.strerror}): name another with --output") from None


def show_table(table: Table) -> None:
    """A table on stdout, wide enough for its figures."""
    console = stdout()
    console.width = max(console.width, 120)  # cut at 80 columns the figures are of no use
    console.print(table)


def _table(result: dict[str, Any]) -> Table:
    table = Table(
        title="{model}, {tokens} tokens, {steps} steps, {passages} passages".format_map(result),
        caption="KL to the full cache in nats; times are medians of one run on this machine: compare within it",
    )
    for heading in ("method", "KL", "same token", "ms/token", "prefill/s", "hit", "moved", "hot", "read/token"):
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    for row in result["rows"]:
        table.add_row(
            row["label"],
            f"{row['kl']:.5f}",
            f"{row['agreement']:.1%}",
            f"{row['decode_ms']:.1f}",
            f"{row['prefill_tokens_per_s']:.0f}",
            percent(row["hot_hit_rate"]),
            percent(row["moved_fraction"]),
            human_bytes(row["hot_peak_bytes"]),
            human_bytes(row["cold_read_bytes_per_token"]),
        )
    return table


def percent(share: float | None) -> str:
    """A share for people."""
    return "–" if share is None else f"{share:.1%}"
