"""``hillinfer eval``: what policies do on real tasks, beside the full cache on the same prompts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.cli.bench import REPORTS, numbers, write_text
from hillinfer.cli.console import stdout, write_json
from hillinfer.cli.eval_progress import EvalProgress
from hillinfer.cli.eval_table import show_results
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.policy import PolicyFile, load_file
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.evaluation.plans import Part
    from hillinfer.evaluation.results import Results

_WHAT, _WHO, _OUTPUT = "What is asked", "Who answers", "Output"
_LENGTHS = "2048,4096"
POLICIES = "hillinfer@5%,hillinfer@10%,hillinfer@20%,h2o@20%,quest@20%,snapkv@20%,streaming-llm@20%,heterocache@50%"

EPILOG = "\n\n".join(
    [
        "[bold]Examples[/]",
        "hillinfer eval --small    [dim]what make eval-small runs: 45 minutes on two cores[/]",
        "hillinfer eval --tasks passkey,needle --lengths 1024,2048 --limit 5 --policies hillinfer@10%,h2o@20%",
        "hillinfer eval --tasks longbench,harness --data data --limit 20    [dim]data sets, from a folder[/]",
        "hillinfer eval --model gemma3 --lengths 4096,16384    [dim]a second model[/]",
        "hillinfer compare a.json b.json    [dim]two results beside each other[/]",
        "A run that was killed goes on where it was when the same command is given again.",
    ]
)


def eval_command(
    model: Annotated[
        str | None, typer.Option(help="As in generate; gemma3 is gemma-3-270m.", rich_help_panel=_WHO)
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            help="Policies with their shares of the cached tokens, by commas; the full cache always comes first.",
            rich_help_panel=_WHO,
        ),
    ] = POLICIES,
    tasks: Annotated[
        str,
        typer.Option(
            help="By commas: needle, longbench, longbench/trec, longbench-v2, infinitebench/passkey, harness/piqa, … "
            "(docs/evaluation.md has all); default: all that need no data set.",
            rich_help_panel=_WHAT,
        ),
    ] = "",
    lengths: Annotated[
        str,
        typer.Option(help="Context lengths in tokens, by commas.", show_default=_LENGTHS, rich_help_panel=_WHAT),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(help="Items of each task and length, at most.", show_default="the task's", rich_help_panel=_WHAT),
    ] = None,
    small: Annotated[
        bool,
        typer.Option("--small", help="A fixed choice of tasks, lengths and items instead.", rich_help_panel=_WHAT),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.", rich_help_panel=_WHAT)] = 0,
    text: Annotated[
        Path | None,
        typer.Option(
            help="What to hide things in and to continue: a UTF-8 text, or a folder of .txt files.",
            show_default="the English text in CPython",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    chat: Annotated[
        bool,
        typer.Option(
            "--chat",
            help="Ask what is made here in the model's chat template; data sets know whether they are.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of a data set's files.", show_default="the Hugging Face hub", rich_help_panel=_WHAT),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            help="Head profile for heterocache.",
            show_default="where hillinfer profile puts it",
            rich_help_panel=_WHO,
        ),
    ] = None,
    policy_file: PolicyFile = None,
    cold_dir: Annotated[Path | None, typer.Option(help="Folder of the cold files.", rich_help_panel=_WHO)] = None,
    output: Annotated[
        Path,
        typer.Option(
            help="Where the JSON goes, and pictures beside it; what is finished is noted beside it meanwhile.",
            rich_help_panel=_OUTPUT,
        ),
    ] = REPORTS / "eval.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Policies on real tasks: score, likelihood of the right answer, and memory, beside the full cache.

    Each prompt is read once, then every policy answers. Differences to the full cache are paired, with 95 % intervals.
    """
    if limit is not None and limit < 1:
        raise SettingError(f"--limit is {limit}: ask for at least 1 item")
    if seed < 0:
        raise SettingError(f"--seed is {seed}: take one from 0 on")
    if small and (tasks or lengths or limit is not None):
        raise SettingError("--small has its own --tasks, --lengths and --limit: leave these out, or --small")
    if cold_dir is not None and not cold_dir.is_dir():
        raise SettingError(f"the cold folder {cold_dir} is no folder: create it, or name another with --cold-dir")
    if text is not None and not text.exists():
        raise SettingError(f"--text {text}: there is no such file or folder")
    check_output(output)
    load_file(policy_file)
    if text is not None:
        from hillinfer.evaluation.local.texts import read_texts

        read_texts(text)

    from hillinfer.evaluation.contender import parse_contenders
    from hillinfer.evaluation.plans import SMALL
    from hillinfer.evaluation.results import write_results
    from hillinfer.figures.canvas import check_matplotlib

    check_matplotlib()

    contenders = parse_contenders(policies, {"heterocache": {"profile": profile}} if profile is not None else {})
    plan = SMALL if small else _plan(tasks, lengths or _LENGTHS, limit)
    settings: dict[str, Any] = {
        "policies": list(map(str, contenders)),
        "plan": [{"task": part.task, "lengths": list(part.lengths), "limit": part.limit} for part in plan],
        "text": None if text is None else text.name,
        "data": None if data is None else str(data),
        "chat": chat,
        "profile": None if profile is None else _digest(profile),
    }
    if policy_file is not None:
        settings["policy_file"] = _digest(policy_file)
    from hillinfer.evaluation import registry
    from hillinfer.evaluation.model_files import model_files
    from hillinfer.evaluation.runner import Evaluation
    from hillinfer.evaluation.shelf import Shelf
    from hillinfer.evaluation.task import Asking
    from hillinfer.integrations.identity import identify
    from hillinfer.models import load
    from hillinfer.profiling.profile_file import default_profile

    asked = [(registry.find(part.task)(), part) for part in plan]
    for task, part in asked:
        task.check(data, part.limit)
    loaded = load(model)
    if model is not None and loaded.source == str(Path(model).expanduser()):
        settings["model"] = str(Path(model).expanduser().resolve())  # its name may be another's in another folder
    if profile is None and any(contender.policy == "heterocache" for contender in contenders):
        usual = default_profile(identify(loaded.model).name)
        settings["profile"] = _digest(usual) if usual.is_file() else None
    shelf = Shelf()
    with EvalProgress() as progress:
        evaluation = Evaluation(
            loaded.model, loaded.tokenizer, loaded.name, seed, contenders, settings, cold_dir, progress.update
        )
        work = evaluation.work(
            [
                (task, Asking(loaded.tokenizer, part.lengths, part.limit, seed, text, data, chat, shelf))
                for task, part in asked
            ]
        )
        try:
            journal = output.with_name(f"{output.stem}.items.jsonl")
            results = evaluation.run(work, journal, model_files(loaded.model))
        finally:
            evaluation.close()
    write_results(output, results)
    pictures = draw(results, output)
    journal.unlink()
    if as_json:
        write_json(results.model_dump())
        return
    show_results(results)
    stdout().print(f"written: {', '.join(map(str, [output, *pictures]))}", soft_wrap=True)


def _plan(tasks: str, lengths: str, limit: int | None) -> list[Part]:
    from hillinfer.evaluation import registry
    from hillinfer.evaluation.plans import plan_of

    wanted = numbers(lengths, "lengths")
    if not wanted or not all(length >= 1 and length.is_integer() for length in wanted):
        raise SettingError(f"--lengths is {lengths!r}: write numbers of tokens with commas between them")
    named = [task.strip() for task in tasks.split(",") if task.strip()]
    if tasks and not named:
        raise SettingError(f"--tasks is {tasks!r}: name tasks with commas between them")
    return plan_of(named or registry.local_names(), [int(length) for length in wanted], limit)


def _digest(path: Path) -> str:
    """Of a file: a run does not go on with another, whatever its name."""
    import hashlib

    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise SettingError(f"{path} cannot be read ({error.strerror}): check its name and permissions") from None


def check_output(output: Path) -> None:
    """SettingError, before anything is computed, for a file that cannot be written."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"{output.parent} cannot be made ({error.strerror}): name another with --output") from None
    if output.is_dir() or not os.access(output.parent, os.W_OK):
        raise SettingError(f"{output} cannot be written: name a file in a folder of yours with --output")


def draw(results: Results, output: Path) -> list[Path]:
    """Pictures beside the results: quality against memory, differences, needles."""
    from io import StringIO

    from hillinfer.evaluation.picture import memory_figure
    from hillinfer.figures import differences, needles
    from hillinfer.figures.reports import Evaluation as Report

    report = Report.model_validate(results.model_dump())
    texts = {
        f"-{picture.name}": picture.file() for picture in [*differences.pictures(report), *needles.pictures(report)]
    }
    memory = memory_figure(results.rows)
    if memory is not None:
        plot = StringIO()
        memory.savefig(plot, format="svg")
        texts["-memory"] = plot.getvalue()
    paths = [output.with_name(f"{output.stem}{name}.svg") for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths
