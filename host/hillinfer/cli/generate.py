"""``hillinfer generate``: a model answers a question about a document, its KV cache in three tiers."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.cli.console import stderr, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.policy import (
    DEFAULT,
    FULL,
    PANEL,
    BudgetText,
    PolicyFile,
    PolicyName,
    Settings,
    choose,
    load_file,
)
from hillinfer.cli.progress import PrefillBar
from hillinfer.cli.table import report_table
from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import ColdPoolError, DocumentError, SettingError

if TYPE_CHECKING:
    from hillinfer.models import LoadedModel

_PROMPT, _POLICY, _TIERS = "Model and prompt", PANEL, "Where the KV cache lives"
_TEXT, _OUTPUT = "The text", "Output"


class Truncate(str, Enum):
    """What to do with a document that does not fit into the model's context."""

    error = "error"
    middle = "middle"


class Dtype(str, Enum):
    """Number format of weights and of the KV cache."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Reduce(str, Enum):
    """How the scores of the query heads of one KV head become one."""

    max_lse = "max-lse"
    sum = "sum"


class Scope(str, Enum):
    """Whether all heads attend the same tokens."""

    token = "token"
    head = "head"


class DeviceKeys(str, Enum):
    """Where a card's scoring copy lies."""

    auto = "auto"
    resident = "resident"
    stream = "stream"


class DeviceSplit(str, Enum):
    """How several cards share the keys."""

    tokens = "tokens"
    layer = "layer"


class ScoringCopy(str, Enum):
    """What of the keys is scanned at every step."""

    auto = "auto"
    int8 = "int8"
    int4 = "int4"
    projected = "projected"
    half = "projected/2"
    quarter = "projected/4"
    eighth = "projected/8"
    stream = "stream"


class OnDeviceError(str, Enum):
    """What to do when the device fails."""

    fail = "fail"
    fallback = "fallback"


EPILOG = "\n\n".join(
    [
        "[bold]Examples[/]",
        "hillinfer generate",
        'hillinfer generate --prompt-file book.txt --prompt "Who is the narrator?" --truncate middle',
        "hillinfer generate --alpha 1    [dim]attend every token: the stock cache's text[/]",
        "hillinfer generate --policy full    [dim]the stock cache itself, to compare memory and time[/]",
        "hillinfer generate --policy snapkv --budget 20% --set window=64    [dim]a policy that drops tokens[/]",
        "hillinfer generate --hot-bytes 5% --json    [dim]for a script[/]",
        "hillinfer generate --device xrt:0 --xclbin qk_score.xclbin    [dim]a SmartSSD scores[/]",
    ]
)


def generate_command(
    model: Annotated[
        str | None,
        typer.Option(
            help="Name (see hillinfer models), Hugging Face id, local directory or .gguf file.",
            show_default="SmolLM2-135M-Instruct",
            rich_help_panel=_PROMPT,
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            help="The question about the document.",
            show_default="the built-in document's own",
            rich_help_panel=_PROMPT,
        ),
    ] = None,
    prompt_file: Annotated[
        Path | None,
        typer.Option(
            help="The document: a text file in UTF-8.",
            show_default="a built-in text of 6,500 tokens",
            rich_help_panel=_PROMPT,
        ),
    ] = None,
    truncate: Annotated[
        Truncate,
        typer.Option(
            help="A document longer than the context: stop, or cut its middle out (told and counted).",
            rich_help_panel=_PROMPT,
        ),
    ] = Truncate.error,
    dtype: Annotated[
        Dtype,
        typer.Option(
            help="Number format of weights and KV cache; the 16-bit ones halve both.", rich_help_panel=_PROMPT
        ),
    ] = Dtype.float32,
    policy: PolicyName = DEFAULT,
    budget: BudgetText = None,
    settings: Settings = None,
    policy_file: PolicyFile = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Share of the tokens attended per step, above 0 and up to 1; less is faster, 1 is exact.",
            show_default="0.1",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            help="The same budget as a number of tokens, whatever the length.",
            show_default="alpha decides",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    mass: Annotated[
        float | None,
        typer.Option(
            help="As few tokens as capture this share of the attention, 0.95 say; at most alpha of them.",
            show_default="alpha decides",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    reduce: Annotated[
        Reduce | None,
        typer.Option(
            help="Rank a token by its best head (max-lse, finer) or by the sum over heads (as in the paper).",
            show_default="max-lse",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    scope: Annotated[
        Scope | None,
        typer.Option(
            help="One set of tokens for all heads (fewer reads), or one for each KV head.",
            show_default="token",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    hot_bytes: Annotated[
        str | None,
        typer.Option(
            help="DRAM for the hot pool: bytes (512MiB) or a share of the KV cache; more means fewer reads.",
            show_default="20%",
            rich_help_panel=_TIERS,
        ),
    ] = None,
    device_bytes: Annotated[
        str | None,
        typer.Option(
            help="Memory for the newest tokens, which need no scoring yet: bytes or a share.",
            show_default="128 tokens per layer",
            rich_help_panel=_TIERS,
        ),
    ] = None,
    cold_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the cold pool: on your fastest SSD, with room for the whole KV cache.",
            show_default="in the user's cache folder",
            rich_help_panel=_TIERS,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="Who scores the cold pool: software, native, rtl, xrt:0, pynq:0; several cards with commas.",
            rich_help_panel=_TIERS,
        ),
    ] = "software",
    xclbin: Annotated[
        Path | None,
        typer.Option(
            help="The kernel's image for an xrt or pynq device.",
            show_default="the one in bitstreams/",
            rich_help_panel=_TIERS,
        ),
    ] = None,
    device_keys: Annotated[
        DeviceKeys,
        typer.Option(
            help="Keys in the card's memory, or streamed from its drive; auto: in memory where there is room.",
            rich_help_panel=_TIERS,
        ),
    ] = DeviceKeys.auto,
    device_split: Annotated[
        DeviceSplit,
        typer.Option(
            help="Several cards share every query, or have whole layers each.",
            rich_help_panel=_TIERS,
        ),
    ] = DeviceSplit.tokens,
    on_device_error: Annotated[
        OnDeviceError,
        typer.Option(
            help="When the device fails: stop, or go on with the software device, same text.", rich_help_panel=_TIERS
        ),
    ] = OnDeviceError.fail,
    balance: Annotated[
        str,
        typer.Option(
            help="Who scores how much: auto (hillinfer calibrate), off (the host what is pinned), or host / device.",
            rich_help_panel=_TIERS,
        ),
    ] = "auto",
    lookahead: Annotated[
        int,
        typer.Option(
            help="1: read what the next layer will likely ask for, while this one computes; same text.",
            rich_help_panel=_TIERS,
        ),
    ] = 0,
    threads: Annotated[
        int, typer.Option(help="CPU threads that share a layer's scoring and attention.", rich_help_panel=_TIERS)
    ] = 1,
    scoring_copy: Annotated[
        ScoringCopy | None,
        typer.Option(
            help="What of the keys is scanned at every step, finest first; auto: the finest that fits its budget.",
            show_default="auto",
            rich_help_panel=_TIERS,
        ),
    ] = None,
    scoring_bytes: Annotated[
        str | None,
        typer.Option(
            help="Memory for what is scanned, besides --hot-bytes: bytes or a share of the KV cache.",
            show_default="what INT8 keys need",
            rich_help_panel=_TIERS,
        ),
    ] = None,
    prefill_chunk: Annotated[
        int,
        typer.Option(
            help="Prompt tokens per forward pass: bounds memory while reading, changes no result.",
            rich_help_panel=_TIERS,
        ),
    ] = 512,
    max_new_tokens: Annotated[
        int,
        typer.Option(help="Stop after so many new tokens, if the model does not before.", rich_help_panel=_TEXT),
    ] = 128,
    temperature: Annotated[
        float,
        typer.Option(
            help="0 always takes the likeliest token; 0.7 varies, above 1 rambles.",
            rich_help_panel=_TEXT,
        ),
    ] = 0.0,
    top_p: Annotated[
        float,
        typer.Option(
            help="With a temperature: draw from the likeliest tokens that hold this share, up to 1.",
            rich_help_panel=_TEXT,
        ),
    ] = 1.0,
    seed: Annotated[
        int,
        typer.Option(help="With a temperature: the same seed gives the same text.", rich_help_panel=_TEXT),
    ] = 0,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Write what ran when to this file: Chrome trace JSON, for ui.perfetto.dev.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Answer a question about a long document, the KV cache in three tiers; nothing of it is thrown away.

    The text streams to stdout; then comes a table of what each tier held and what it cost.
    """
    # Everything that can be wrong with the settings is found before a model is loaded, which takes a while.
    store = StoreSettings(
        hot_bytes=_budget("--hot-bytes", "20%" if hot_bytes is None else hot_bytes),
        device_bytes=None if device_bytes is None else _budget("--device-bytes", device_bytes),
        cold_dir=cold_dir,
        device=device,
        xclbin=xclbin,
        device_keys=device_keys.value,
        device_split=device_split.value,
        on_device_error=on_device_error.value,
        scoring_copy=ScoringCopy.auto.value if scoring_copy is None else scoring_copy.value,
        scoring_bytes=None if scoring_bytes is None else _budget("--scoring-bytes", scoring_bytes),
        balance=balance,
        lookahead=lookahead,
        threads=threads,
    )
    question = _question(prompt)
    _check_places(policy, trace, cold_dir)

    from hillinfer import documents
    from hillinfer.csd.registry import check_devices
    from hillinfer.generation import check_run, generate
    from hillinfer.models.quiet import quiet

    check_run(max_new_tokens, temperature, top_p, prefill_chunk, seed)
    given: dict[str, Any] = {"alpha": alpha, "tokens": tokens, "mass": mass}
    given |= {"reduce": reduce and reduce.value, "scope": scope and scope.value}
    load_file(policy_file)
    chosen = choose(policy, budget, settings, given)
    if (scoring_copy or scoring_bytes) and policy != DEFAULT:
        raise SettingError(
            f"--scoring-copy and --scoring-bytes are about keys that are scanned, and --policy {policy} scans none so: "
            "leave them out"
        )
    if chosen is not None and not chosen.drops:
        check_devices(store)
    else:
        _check_no_tiers(policy, store, hot_bytes is not None)
    document = None if prompt_file is None else documents.read_prompt_file(prompt_file)

    show = not as_json
    # A library that prints would spoil the one JSON object.
    with contextlib.nullcontext() if show else contextlib.redirect_stdout(sys.stderr), quiet():
        loaded = _load(model, dtype, show)
        if document is None:
            document = documents.default_document(loaded.tokenizer)
            question = question or documents.DEFAULT_QUESTION
        context = loaded.model.config.get_text_config().max_position_embeddings
        built = documents.build_prompt(
            loaded.tokenizer, document, question or "", context, max_new_tokens, truncate.value
        )
        with PrefillBar(show) as bar, _text_stream(show) as write:
            report = generate(
                loaded.model,
                loaded.tokenizer,
                built.input_ids,
                policy=chosen,
                store=store,
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                top_p=top_p,
                seed=seed,
                prefill_chunk=prefill_chunk,
                on_text=write,
                on_prefill=bar.update,
                trace_file=trace,
            )
    report.model = loaded.name
    report.document_tokens_cut = built.cut_tokens
    if as_json:
        write_json(report.as_dict())
    else:
        stdout().print()
        stdout().print(report_table(report))


def _question(prompt: str | None) -> str | None:
    if prompt is not None and not prompt.strip():
        raise DocumentError("--prompt is empty: ask something, or leave it out for the built-in question")
    return prompt


def _budget(option: str, text: str) -> Budget:
    try:
        return Budget.parse(text)
    except SettingError as error:
        raise SettingError(f"{option}: {error}") from None


def _check_places(policy: str, trace: Path | None, cold_dir: Path | None) -> None:
    """Raise for a file or folder of no use; the engine looks closer at the cold folder when it opens it."""
    if trace is not None:
        if policy == FULL:
            raise SettingError("--trace shows the tiers at work, and --policy full has none: leave one of them out")
        if trace.is_dir() or not trace.parent.is_dir():
            raise SettingError(f"--trace {trace}: name a file in a folder that exists")
    if cold_dir is not None and policy != FULL and not cold_dir.is_dir():
        raise ColdPoolError(f"the cold folder {cold_dir} is no folder: create it, or name another with --cold-dir")


def _check_no_tiers(policy: str, store: StoreSettings, hot_bytes: bool) -> None:
    """Raise for what only a policy with tiers heeds, rather than ignore it. hot_bytes: whether it was asked for."""
    if store.device != "software":
        raise SettingError(
            f"--device {store.device} scores a cold pool, and --policy {policy} has none: leave one of them out"
        )
    usual = StoreSettings()
    asked = [
        field.name
        for field in dataclasses.fields(store)
        if field.name not in ("hot_bytes", "cold_dir") and getattr(store, field.name) != getattr(usual, field.name)
    ]
    for name in ["hot_bytes"] * hot_bytes + asked:
        option = "--" + name.replace("_", "-")
        raise SettingError(f"{option} is about the tiers, and --policy {policy} has none: leave one of them out")


def _load(model: str | None, dtype: Dtype, show: bool) -> LoadedModel:
    import torch

    from hillinfer.models import load

    console = stderr()
    waiting = console.status("loading the model") if show and console.is_terminal else contextlib.nullcontext()
    with waiting:
        return load(model, getattr(torch, dtype.value))


@contextlib.contextmanager
def _text_stream(show: bool) -> Iterator[Callable[[str], None] | None]:
    """A function that writes text to stdout at once; afterwards the line is ended, after Ctrl-C too."""
    if not show:
        yield None
        return
    last = "\n"

    def write(text: str) -> None:
        nonlocal last
        last = text[-1:] or last  # first: Ctrl-C may come while we write
        sys.stdout.write(text)
        sys.stdout.flush()

    try:
        yield write
    finally:
        if last != "\n":
            write("\n")
