"""``hillinfer bench policies``: what each policy costs and what it gets wrong, at equal budgets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hillinfer.cli.bench import (
    ColdDir,
    bench_app,
    document_tokens,
    numbers,
    percent,
    progress,
    show_table,
    write_result,
    write_text,
)
from hillinfer.cli.console import human_bytes, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import writable
from hillinfer.cli.policy import PolicyFile, load_file
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.bench.policies import Row


@bench_app.command("policies")
def policies_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    tokens: Annotated[str, typer.Option(help="Context lengths, by commas.")] = "4096,8192",
    budgets: Annotated[str, typer.Option(help="Shares of the cached tokens, by commas.")] = "10%,20%,50%",
    policies: Annotated[str, typer.Option(help="Names by commas (hillinfer policies lists them); default: all.")] = "",
    steps: Annotated[int, typer.Option(help="Decoded tokens per text.")] = 64,
    passages: Annotated[int, typer.Option(help="Texts per context length.")] = 1,
    depths: Annotated[str, typer.Option(help="Where the hidden numbers stand, 0 to 1, by commas.")] = "0.1,0.5,0.9",
    text: Annotated[Path | None, typer.Option(help="A UTF-8 text; default: the English text in CPython.")] = None,
    profile: Annotated[
        Path | None, typer.Option(help="Head profile for heterocache; default: where hillinfer profile puts it.")
    ] = None,
    policy_file: PolicyFile = None,
    cold_dir: ColdDir = None,
    output: Annotated[
        Path, typer.Option(help="Where the JSON goes; the plot goes beside it.", callback=writable)
    ] = Path("build/reports/policies.json"),
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """All policies at equal budgets, on the same prompts: quality beside the full cache, memory, time."""
    lengths, shares, places = numbers(tokens, "tokens"), numbers(budgets, "budgets"), numbers(depths, "depths")
    if steps < 1 or passages < 1 or not all(length > steps for length in lengths):
        raise SettingError("bench needs steps and passages of at least 1, and more tokens than steps")
    if not all(0 < share <= 1 for share in shares) or not all(0 <= place <= 1 for place in places):
        raise SettingError("budgets are shares above 0% up to 100%, and depths lie between 0 and 1")
    import random

    from hillinfer.bench import policies as bench
    from hillinfer.bench.texts import passages as windows
    from hillinfer.evaluation.local.hiding import Haystack
    from hillinfer.evaluation.local.single import Passkey
    from hillinfer.evaluation.task import Asking
    from hillinfer.figures import policies as quality_against_memory
    from hillinfer.figures.canvas import check_matplotlib
    from hillinfer.figures.reports import Policies
    from hillinfer.models import load
    from hillinfer.profiling.profile_file import read_profile

    check_matplotlib()
    load_file(policy_file)
    chosen: dict[str, dict[str, Any]] = {name: {} for name in bench.check_names(policies)}
    if profile is not None and "heterocache" in chosen:
        read_profile(profile)  # raises for one that is none, before a model is loaded
        chosen["heterocache"] = {"profile": profile}
    loaded = load(model)
    longest = int(max(lengths))
    ids = document_tokens(loaded.tokenizer, text, longest)
    rows = []
    with progress() as say:
        comparison = bench.Comparison(loaded.model, chosen, shares, cold_dir, say)
        for length in map(int, lengths):
            texts = windows(ids, length, passages)
            haystack = Haystack(Asking(loaded.tokenizer, [length], text=text))
            made = [Passkey().hidden(random.Random(seed), place) for seed, place in enumerate(places)]
            hidden = [haystack.item(str(seed), length, (0, 0), each) for seed, each in enumerate(made)]
            rows.extend(comparison.run(bench.Task(length, texts, steps, hidden)))
    result = bench.as_dict(rows, {"model": loaded.name, "steps": steps, "passages": passages, "depths": places})
    write_result(output, result)
    picture = quality_against_memory.picture(Policies.model_validate(result))
    write_text(output.with_suffix(".svg"), picture.file())
    if as_json:
        write_json(result)
        return
    for length in map(int, lengths):
        show_table(policies_table(loaded.name, rows, length))
        for row in rows:
            if row.note and row.context == length:
                stdout().print(f"undefined: {row.policy} at {row.budget:.0%}: {row.note}")
        winner = bench.best(rows, length, 0.2)
        if winner is not None:
            stdout().print(f"lowest KL with at most 20 % in fast memory: {winner.policy} at {winner.budget:.0%}")
    stdout().print(f"written: {output}, {output.with_suffix('.svg')}")


def policies_table(model: str, rows: Sequence[Row], context: int) -> Table:
    """All policies and budgets at one context length."""
    table = Table(
        title=f"{model}, {context} tokens",
        caption="KL and NLL to the full cache in nats; hidden: digits of the hidden numbers said right; fast: in DRAM "
        "and on the device; times are of one run on this machine: compare within it",
    )
    for heading in ("policy", "budget", "KL", "NLL", "same token", "hidden", "fast", "cold", "ms/token"):
        table.add_column(heading, justify="left" if heading == "policy" else "right", no_wrap=True)
    here = [row for row in rows if row.context == context]
    for row, following in zip(here, [*here[1:], None], strict=True):
        last = following is None or following.budget != row.budget
        name = f"{row.policy} (drops)" if row.drops else row.policy
        if row.kl is None or row.nll_delta is None or row.fast_bytes is None or row.cold_bytes is None:
            table.add_row(name, f"{row.budget:.0%}", "undefined", end_section=last)
            continue
        table.add_row(
            name,
            f"{row.budget:.0%}",
            f"{row.kl:.5f}",
            f"{row.nll_delta:+.4f}",
            percent(row.agreement),
            percent(row.passkey),
            human_bytes(row.fast_bytes),
            human_bytes(row.cold_bytes),
            f"{row.ms_per_token:.1f}",
            end_section=last,
        )
    return table
