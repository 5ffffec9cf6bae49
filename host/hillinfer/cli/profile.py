"""``hillinfer profile``: which heads of a model look alike, and which are steady; what the policy heterocache needs."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from hillinfer.cli.console import stderr, stdout, write_json
from hillinfer.cli.generate import Dtype
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import writable
from hillinfer.cli.progress import PrefillBar
from hillinfer.errors import DocumentError, SettingError

if TYPE_CHECKING:
    from hillinfer.profiling.measure import AnalysisSettings
    from hillinfer.profiling.profile import HeadProfile

_MODEL, _MEASURE, _OUTPUT = "Model and text", "What is measured", "Output"
_STYLES = {"anchor": ("a", "blue"), "volatile": ("v", "red"), "pivot": ("P", "bold yellow"), "satellite": ("s", "dim")}

EPILOG = "\n\n".join(
    [
        "[bold]Examples[/]",
        "hillinfer profile    [dim]the default model, by the text in every CPython[/]",
        "hillinfer profile --text book.txt --picture roles.svg",
        "hillinfer profile --import Head_Analysis_llama-3.1-8b-instruct_topk1024_th0.5_sim0.5_step5000.json",
        "hillinfer generate --policy heterocache    [dim]uses what hillinfer profile found[/]",
    ]
)


def profile_command(
    model: Annotated[
        str | None,
        typer.Option(
            help="Name (see hillinfer models), Hugging Face id, local directory or .gguf file.",
            show_default="SmolLM2-135M-Instruct",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="What the model reads: a text file in UTF-8.",
            show_default="the English text in CPython",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    tokens: Annotated[int, typer.Option(help="Tokens of the text to read, at most.", rich_help_panel=_MODEL)] = 6500,
    imported: Annotated[
        Path | None,
        typer.Option(
            "--import",
            help="Measure nothing: read a profile, of HeteroCache's authors or of ours.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    dtype: Annotated[
        Dtype,
        typer.Option(help="Number format of weights and KV; a profile serves all of them.", rich_help_panel=_MODEL),
    ] = Dtype.float32,
    steps: Annotated[
        int, typer.Option(help="Tokens generated and watched after the text.", rich_help_panel=_MEASURE)
    ] = 100,
    top_k: Annotated[
        int, typer.Option(help="Tokens that count as what a head looks at.", rich_help_panel=_MEASURE)
    ] = 1024,
    tau_stable: Annotated[
        float,
        typer.Option(
            help="A head alone is an anchor from this stability on; 0.4 for small budgets.", rich_help_panel=_MEASURE
        ),
    ] = 0.5,
    tau_similar: Annotated[
        float,
        typer.Option(help="Two heads of a layer are alike from this overlap on.", rich_help_panel=_MEASURE),
    ] = 0.5,
    at_step: Annotated[
        int | None,
        typer.Option(
            help="Judge likeness at this step alone (-1: the last), as the authors' published code does.",
            show_default="the median over all steps, as in the paper",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    prefill_chunk: Annotated[
        int, typer.Option(help="Tokens per forward pass while reading.", rich_help_panel=_MEASURE)
    ] = 512,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where the profile goes, as JSON.",
            callback=writable,
            show_default="where --policy heterocache looks for it",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw heads × layers, coloured by role: .svg, .png or .pdf.",
            callback=writable,
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Find the roles of a model's KV heads (anchor, volatile, pivot, satellite) for the policy heterocache.

    The model reads a text and continues it; once per model is enough. Fine-tunes may use the profile of their base.
    """
    from hillinfer.figures.roles import check_picture, draw
    from hillinfer.profiling.measure import AnalysisSettings
    from hillinfer.profiling.profile_file import default_profile, read_profile, write_profile

    settings = AnalysisSettings(steps, top_k, tau_stable=tau_stable, tau_similar=tau_similar, at_step=at_step)
    if prefill_chunk < 1:
        raise SettingError(f"prefill_chunk is {prefill_chunk}: use at least 1 token per chunk, 512 say")
    if picture is not None:
        check_picture(picture)
    if imported is not None:
        if model is not None or text is not None:
            raise SettingError("--import reads a profile that has been measured: leave out --model and --text")
        profile = read_profile(imported)
    else:
        profile = _measured(model, dtype, text, tokens, settings, prefill_chunk, show=not as_json)
        output = output or default_profile(profile.model.name)
    if output is not None:
        write_profile(profile, output)
    if picture is not None:
        draw(profile, picture)
    if as_json:
        write_json(_summary(profile) | {"output": output, "picture": picture})
        return
    console = stdout()
    console.print(_table(profile))
    for what, where in (("profile", output), ("picture", picture)):
        if where is not None:
            console.print(f"{what}: {where}", soft_wrap=True)


def _measured(
    model: str | None,
    dtype: Dtype,
    text: Path | None,
    tokens: int,
    settings: AnalysisSettings,
    prefill_chunk: int,
    *,
    show: bool,
) -> HeadProfile:
    import torch

    from hillinfer.documents import default_document, read_prompt_file
    from hillinfer.models import load
    from hillinfer.models.quiet import quiet
    from hillinfer.profiling.measure import measure

    body = None if text is None else read_prompt_file(text)  # before a model is loaded, which takes a while
    # A library that prints would spoil the one JSON object.
    with contextlib.nullcontext() if show else contextlib.redirect_stdout(sys.stderr), quiet():
        console = stderr()
        waiting = console.status("loading the model") if show and console.is_terminal else contextlib.nullcontext()
        with waiting:
            loaded = load(model, getattr(torch, dtype.value))
        source = "pydoc_data.topics of CPython" if body is None else str(text)
        body = default_document(loaded.tokenizer, tokens + 1000) if body is None else body
        ids = loaded.tokenizer(body, return_tensors="pt", verbose=False)["input_ids"]
        context = loaded.model.config.get_text_config().max_position_embeddings
        if context <= settings.steps:
            raise DocumentError(
                f"the model's context of {context} has no room for {settings.steps} steps: give --steps"
            )
        ids = ids[:, : min(tokens, context - settings.steps)]
        with contextlib.ExitStack() as bars:
            reading = bars.enter_context(PrefillBar(show, "reading the text"))
            watching: list[PrefillBar] = []

            def on_step(done: int, total: int) -> None:
                if not watching:  # a terminal shows one bar at a time, and the first is gone by now
                    watching.append(bars.enter_context(PrefillBar(show, "watching its heads", "steps")))
                watching[0].update(done, total)

            common: dict[str, Any] = {"text": source, "prefill_chunk": prefill_chunk}
            return measure(loaded.model, ids, settings, on_prefill=reading.update, on_step=on_step, **common)


def _summary(profile: HeadProfile) -> dict[str, Any]:
    """What ``--json`` prints: roles and clusters, and what follows from them for budgets."""
    compressed = profile.shares[profile.shares > 0]
    return {
        "model": profile.model.name,
        "counts": profile.counts,
        "heads": profile.heads,
        "whole_heads": profile.whole,
        "least_budget": profile.whole / profile.heads,
        "mean_share": float(compressed.mean()) if len(compressed) else None,
        "tau_stable": profile.tau_stable,
        "tau_similar": profile.tau_similar,
        "layers": [
            {
                "layer": index,
                "roles": [role.value for role in layer.roles],
                "clusters": {str(pivot): list(members) for pivot, members in layer.clusters.items()},
            }
            for index, layer in zip(profile.model.layers, profile.layers, strict=True)
        ],
        "origin": dict(profile.origin),
    }


def _table(profile: HeadProfile) -> Table:
    counts = ", ".join(
        f"{number} {role}{'' if role == 'volatile' or number == 1 else 's'}" for role, number in profile.counts.items()
    )
    table = Table(
        title=f"{profile.model.name}: {counts}",
        title_justify="left",
        title_style="bold",
        caption=f"F = {profile.whole} of {profile.heads} heads keep every token: "
        f"budgets of more than {profile.whole / profile.heads:.1%} are served",
        caption_justify="left",
    )
    table.add_column("layer", justify="right")
    table.add_column("[blue]a[/]nchor [red]v[/]olatile [bold yellow]P[/]ivot [dim]s[/]atellite")
    table.add_column("clusters")
    if profile.stability is not None:
        table.add_column("stability", justify="right")
        table.add_column("similarity", justify="right")
    for row, layer in enumerate(profile.layers):
        letters = Text(" ").join(Text(*_STYLES[role.value]) for role in layer.roles)
        clusters = "  ".join(f"{pivot} → {', '.join(map(str, heads))}" for pivot, heads in layer.clusters.items())
        numbers = []
        if profile.stability is not None and profile.similarity is not None:
            numbers = [" ".join(f"{x:.2f}" for x in of[row]) for of in (profile.stability, profile.similarity)]
        table.add_row(str(profile.model.layers[row]), letters, clusters, *numbers)
    return table
