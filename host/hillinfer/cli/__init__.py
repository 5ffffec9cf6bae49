"""The command line: one file per command; this one has what all commands share, errors above all.

Commands import torch and the engine inside, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Any

import typer

from hillinfer.cli import (  # noqa: F401  # they add their commands
    bench_ablation,
    bench_all,
    bench_balance,
    bench_big,
    bench_copies,
    bench_decode,
    bench_growth,
    bench_io,
    bench_policies,
    bench_scorer,
    simulate_advice,
    simulate_paper,
)
from hillinfer.cli.bench import bench_app
from hillinfer.cli.calibrate import calibrate_command
from hillinfer.cli.compare import compare_command
from hillinfer.cli.console import complain, drop_stdout, write_json
from hillinfer.cli.doctor import doctor_command
from hillinfer.cli.eval import EPILOG as EVAL_EPILOG
from hillinfer.cli.eval import eval_command
from hillinfer.cli.generate import EPILOG, generate_command
from hillinfer.cli.models import models_command
from hillinfer.cli.options import Debug
from hillinfer.cli.policies import policies_command
from hillinfer.cli.profile import EPILOG as PROFILE_EPILOG
from hillinfer.cli.profile import profile_command
from hillinfer.cli.report import EPILOG as REPORT_EPILOG
from hillinfer.cli.report import report_command
from hillinfer.cli.simulate import simulate_app
from hillinfer.errors import HillInferError
from hillinfer.version import __version__

# Before torch is imported: its threads sleep while they wait instead of spinning. Spinning takes the cores from the
# storage device's thread, and on a machine with other work it made decoding two and a half times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

FAILED = 2
"""Exit code of an error a person can act on: a setting, a model, a document, a disk."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_EPILOG = "\n\n".join(
    [
        "[bold]Examples[/]",
        "hillinfer generate    [dim]the default model answers about a built-in document[/]",
        'hillinfer generate --prompt-file book.txt --prompt "Who is the narrator?"',
        "hillinfer generate --help    [dim]every option, and why it is there[/]",
        "hillinfer doctor --device xrt:0    [dim]what this machine lacks for a device, and how to get it[/]",
        "hillinfer calibrate    [dim]how fast host and device are here, to balance the two by[/]",
        "hillinfer bench decode    [dim]quality and speed beside the stock cache[/]",
        "hillinfer eval    [dim]what policies do on retrieval tasks, beside the full cache[/]",
        "hillinfer report    [dim]one page of all that was measured[/]",
        "hillinfer simulate run    [dim]how long a step takes on another box[/]",
        "hillinfer simulate fit    [dim]which context fits a box at what speed, and what another part would change[/]",
        "hillinfer profile    [dim]the roles of a model's heads, for --policy heterocache[/]",
        "hillinfer models    [dim]what --model knows by name[/]",
        "hillinfer policies    [dim]what --policy knows by name, and what each keeps[/]",
    ]
)

app = typer.Typer(
    name="hillinfer",
    help="Long-context LLM decoding on one PC: the whole KV cache in three tiers, scored where it lies.",
    epilog=_EPILOG,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("generate", epilog=EPILOG)(generate_command)
app.command("models")(models_command)
app.command("policies")(policies_command)
app.command("profile", epilog=PROFILE_EPILOG)(profile_command)
app.command("doctor")(doctor_command)
app.command("calibrate")(calibrate_command)
app.command("eval", epilog=EVAL_EPILOG)(eval_command)
app.command("report", epilog=REPORT_EPILOG)(report_command)
app.command("compare")(compare_command)
app.add_typer(bench_app, name="bench")
app.add_typer(simulate_app, name="simulate")


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    print(f"hillinfer {__version__}")
    for library in ("torch", "transformers"):
        try:
            print(f"{library} {metadata.version(library)}")
        except metadata.PackageNotFoundError:
            print(f"{library} is not installed")
    raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Versions of hillinfer, torch, transformers.",
        ),
    ] = False,
    _debug: Debug = False,
) -> None:
    """Long-context LLM decoding on one PC: the whole KV cache in three tiers, scored where it lies."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit: 0, 2 after an error a person can act on, 130 after Ctrl-C.

    An error is one line on stderr; with ``--json`` it is one JSON object on stdout instead.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not end a run
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """The exit code of one command line."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in _NO_ROOM and not isinstance(error, BrokenPipeError):
            raise
        if "--debug" in arguments:
            traceback.print_exc()
        drop_stdout()
        if isinstance(error, BrokenPipeError):  # who reads it has enough: head, say
            return 1
        where = "" if error.filename is None else f" to {error.filename}"
        complain(f"error: what was written{where} found no room ({error.strerror}): make some, or write elsewhere")
        return FAILED
    return code


def _run(arguments: Sequence[str]) -> int:
    # Looked up here and not in a command: what cannot be parsed never reaches one, and is answered alike.
    as_json, debug = "--json" in arguments, "--debug" in arguments
    try:
        code = typer.main.get_command(app).main(list(arguments), prog_name="hillinfer", standalone_mode=False)
    except HillInferError as error:
        if debug:
            traceback.print_exc()
        return _fail(str(error), type(error).__name__, as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error: click's own or, by version, typer's copy of it
            return _fail_usage(error, as_json)
        if not as_json or (isinstance(error, OSError) and error.errno in _NO_ROOM):
            raise  # a defect of ours: the traceback is what we need to see
        traceback.print_exc()
        write_json({"error": str(error), "kind": type(error).__name__})
        return 1
    if code == INTERRUPTED:  # some versions of typer raise on Ctrl-C, others return this
        return _fail("interrupted", "KeyboardInterrupt", as_json, INTERRUPTED)
    return code if isinstance(code, int) else 0


def _fail_usage(error: Any, as_json: bool) -> int:
    message = error.format_message()
    if not message:  # no command given: the help has been shown
        return FAILED
    command = error.ctx.command_path if error.ctx is not None else "hillinfer"
    return _fail(f"{message} (see {command} --help)", "UsageError", as_json)


def _fail(message: str, kind: str, as_json: bool, code: int = FAILED) -> int:
    if as_json:
        write_json({"error": message, "kind": kind})
    else:
        complain(message if code == INTERRUPTED else f"error: {message}")
    return code
