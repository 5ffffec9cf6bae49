"""``hillinfer simulate``: the timing model. One file per further command: ``simulate_….py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.cli.bench import (
    REPORTS,
    ColdDir,
    Text,
    document_tokens,
    numbers,
    progress,
    show_summary,
    show_table,
    table_of,
    whole_numbers,
    write_result,
)
from hillinfer.cli.console import human_bytes, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output, writable
from hillinfer.cli.policy import BudgetText, PolicyName, Settings, choose
from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.simulation.simulated import Simulated
    from hillinfer.simulation.validation import Row

simulate_app = typer.Typer(
    help="The timing model: how long a step takes on hardware that need not be here, from what a run really selected.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@simulate_app.command("run")
def run_command(
    hardware: Annotated[
        str, typer.Option(help="A box by name (paper; here, once measured), or a file: see docs/simulation.md.")
    ] = "paper",
    shape: Annotated[str, typer.Option(help="A model by name, such as opt-6.7b or llama-3.1-8b.")] = "opt-6.7b",
    method: Annotated[
        list[str] | None, typer.Option(help="A method by name; may be given again.", show_default="all of them")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Cached tokens per sequence when decoding begins.")] = 1920,
    batch: Annotated[int, typer.Option(help="Sequences.")] = 1,
    steps: Annotated[int, typer.Option(help="Tokens decoded.")] = 128,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A trace of simulate record, scaled to model, context and batch.", show_default="shipped"
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Write what ran when, of the last method (Chrome trace JSON, ui.perfetto.dev).", callback=writable
        ),
    ] = None,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Time methods on a box: a decode step, and how busy each part of the box is.

    What is selected and where it lies comes from a recorded run of the engine; docs/simulation.md says how it scales.
    """
    if min(tokens, batch, steps) < 1:
        raise SettingError("tokens, batch and steps are at least 1")
    from hillinfer.errors import HillInferError
    from hillinfer.simulation import hardware as boxes
    from hillinfer.simulation import methods
    from hillinfer.simulation import shape as shapes
    from hillinfer.simulation.paper import runs
    from hillinfer.simulation.recording import load
    from hillinfer.simulation.run import simulate

    box, model = boxes.load(hardware), shapes.named(shape)
    chosen = {name: methods.named(name) for name in method or methods.METHODS}
    found = runs.recorded(runs.PAPER_LOW.near(tokens)) if recorded is None else load(recorded)
    if found.policy != "hillinfer":
        raise SettingError(
            f"{recorded} was recorded with {found.policy}, and methods go by what hillinfer selects: "
            "record one with hillinfer simulate record --policy hillinfer"
        )
    work = found.scaled(model, sequences=batch, tokens=tokens, steps=steps)
    results: dict[str, Simulated] = {}
    reasons: dict[str, str] = {}
    for name, each in chosen.items():
        try:
            results[name] = simulate(box, model, each, work)
        except HillInferError as error:
            if method:
                raise
            reasons[name] = str(error)
    if trace is not None and results:
        try:
            list(results.values())[-1].write_timeline(trace)
        except OSError as error:
            raise SettingError(f"{trace} cannot be written ({error.strerror}): name another with --trace") from None
    if as_json:
        told = {
            name: {"step_ms": r.mean_step * 1e3, "seconds": r.seconds, "busy": r.busy_shares}
            for name, r in results.items()
        }
        write_json(
            {
                "hardware": box.model_dump(),
                "shape": model.name,
                "tokens": tokens,
                "batch": batch,
                "steps": steps,
                "recorded": {"model": found.model, "policy": found.policy, **_plain(found.settings)},
                "methods": told,
                "undefined": reasons,
            }
        )
        return
    parts = [*dict.fromkeys(part for result in results.values() for part in result.busy)]
    table = table_of(
        f"{model.name} on {box.name}: {batch} x {tokens:,} tokens, {steps} decoded",
        f"KV {human_bytes(batch * tokens * model.token_bytes)}; busy: share of the time that a part works; "
        f"selections of {found.model}, {found.policy}, {found.tokens:,} tokens",
        *("method", "ms/step", "total s", *parts),
    )
    for name, result in results.items():
        busy = result.busy_shares
        shares = (f"{busy[part]:.0%}" if part in busy else "" for part in parts)
        table.add_row(name, f"{result.mean_step * 1e3:.2f}", f"{result.seconds:.2f}", *shares)
    show_table(table)
    for name, reason in reasons.items():
        stdout().print(f"{name}: {reason}", soft_wrap=True)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without what the shipped runs note down of every step."""
    return {name: value for name, value in settings.items() if not isinstance(value, dict)}


@simulate_app.command("record")
def record_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    policy: PolicyName = "hillinfer",
    budget: BudgetText = None,
    settings: Settings = None,
    alpha: Annotated[float | None, typer.Option(help="Share of the tokens attended per step, of hillinfer.")] = None,
    hot_bytes: Annotated[str, typer.Option(help="DRAM for the hot pool, as in generate.")] = "20%",
    tokens: Annotated[int, typer.Option(help="Tokens of the text that are read first.")] = 4096,
    steps: Annotated[int, typer.Option(help="Tokens decoded and recorded.")] = 64,
    text: Text = None,
    cold_dir: ColdDir = None,
    positions: Annotated[
        bool, typer.Option(help="Also which tokens were selected and hot: for pictures; larger files.")
    ] = True,
    output: Annotated[Path, typer.Option(help="Where the trace goes (.npz).", callback=writable)] = REPORTS
    / "trace.npz",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Record what a policy selects on a real text, and where that lies: what simulate run and the pictures go by."""
    if tokens < 1 or steps < 1:
        raise SettingError("tokens and steps are at least 1")
    store = StoreSettings(hot_bytes=Budget.parse(hot_bytes), cold_dir=cold_dir)
    chosen = choose(policy, budget, settings, {"alpha": alpha})
    from hillinfer.models import load
    from hillinfer.simulation.recorded_run import record
    from hillinfer.simulation.recording import save

    loaded = load(model)
    ids = document_tokens(loaded.tokenizer, text, tokens + steps)
    with progress() as say:
        trace = record(
            loaded.model,
            ids,
            chosen,
            store,
            name=loaded.name,
            tokens=tokens,
            steps=steps,
            positions=positions,
            on_progress=say,
        )
    save(trace, output)
    told = {"model": trace.model, "policy": trace.policy, "layers": trace.layers, **trace.settings, "file": str(output)}
    if as_json:
        write_json(told)
        return
    stdout().print(f"{steps} steps of {trace.policy} behind {tokens:,} tokens: written to {output}", soft_wrap=True)


@simulate_app.command("measure")
def measure_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    cold_dir: ColdDir = None,
    rounds: Annotated[int, typer.Option(help="How often each measurement has its turn.")] = 4,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Another file for the figures.", show_default="where --hardware here looks", callback=writable
        ),
    ] = None,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Measure this machine, for --hardware here: five minutes, and it wants to be idle.

    Every figure has a measurement of its own; the file says which.
    """
    if rounds < 1:
        raise SettingError("rounds is at least 1")
    from hillinfer.models import load
    from hillinfer.simulation.hardware import dump
    from hillinfer.simulation.hardware.files import path_of_here
    from hillinfer.simulation.measuring.here import measure

    path = output or path_of_here()
    with progress() as say:
        box = measure(load(model).model, cold_dir, rounds=rounds, on_progress=say)
    dump(box, path)
    if as_json:
        write_json({"file": str(path), "hardware": box.model_dump()})
        return
    stdout().print(f"written to {path}", soft_wrap=True)


@simulate_app.command("validate")
def validate_command(
    model: Annotated[str | None, typer.Option(help="As in generate.")] = None,
    contexts: Annotated[
        str, typer.Option(help="Lengths of the context, by commas; multiples of 512.")
    ] = "1024,4096,8192",
    alphas: Annotated[str, typer.Option(help="Shares of the tokens attended, by commas.")] = "0.05,0.1,0.2",
    hot: Annotated[str, typer.Option(help="Shares of the KV in DRAM, by commas.")] = "20%,100%",
    rounds: Annotated[int, typer.Option(help="How often each setting has its turn.")] = 3,
    text: Text = None,
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "simulate.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Hold the model beside the clock: decode steps of a model here, measured and simulated.

    The machine is measured in the same turns, so that what else it does hits all alike. A quarter of an hour.
    """
    lengths = whole_numbers(contexts, "contexts")
    shares, pools = numbers(alphas, "alphas"), numbers(hot, "hot")
    if not lengths or any(length < 512 or length % 512 for length in lengths) or rounds < 1:
        raise SettingError("validate needs contexts that are multiples of 512, and at least a round")
    if not all(0 < share <= 1 for share in (*shares, *pools)):
        raise SettingError("alphas and hot are shares above 0 up to 1")
    from hillinfer.models import load
    from hillinfer.simulation import validation
    from hillinfer.simulation.measuring.here import CONTEXTS
    from hillinfer.simulation.model_shape import shape_of
    from hillinfer.simulation.validation_settings import settings_of

    if both := sorted({*lengths} & CONTEXTS):
        raise SettingError(
            f"at {both[0]:,} tokens the machine itself is measured, so that nothing could be told from it: take others "
            f"than {', '.join(map(str, sorted(CONTEXTS)))}"
        )
    loaded = load(model)
    shape = shape_of(loaded.model, loaded.name)
    ids = document_tokens(loaded.tokenizer, text, max(lengths) + validation.decoded(rounds))
    settings = settings_of(lengths, shares, pools)
    with progress() as say:
        found = validation.validate(loaded.model, ids, shape, settings, cold_dir, rounds=rounds, on_progress=say)
    result = validation.as_dict(found, {"model": loaded.name, "rounds": rounds})
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    _show(loaded.name, found.rows)
    for each in found.left_out:
        stdout().print(
            f"left out: {each.policy}, {each.context:,} tokens, {each.hot_share:.0%}: {each.why}", soft_wrap=True
        )
    show_summary(result["summary"])
    stdout().print(f"written: {output}")


def _show(model: str, rows: list[Row]) -> None:
    table = table_of(
        f"{model}: decode steps measured here, and simulated from figures measured apart",
        "hot: share of the KV in DRAM; busy: share of the simulated time that a part works",
        *("policy", "tokens", "hot", "measured ms", "simulated ms", "error", "cpu busy", "drive busy"),
    )
    for row in rows:
        busy: dict[str, Any] = row.busy
        table.add_row(
            row.policy,
            f"{row.context:,}",
            f"{row.hot_share:.0%}",
            f"{row.measured_ms:.1f}",
            f"{row.simulated_ms:.1f}",
            f"{row.error:+.1%}",
            f"{busy.get('cpu', 0):.0%}",
            f"{busy.get('ssd', 0):.0%}",
        )
    show_table(table)
