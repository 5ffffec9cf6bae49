"""Help and version: complete, and quick because torch is not imported for them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest
import typer

from hillinfer.cli import app
from hillinfer.version import __version__

PANELS = {
    "Model and prompt": {"--model", "--prompt", "--prompt-file", "--truncate", "--dtype"},
    "Which tokens are attended": {"--policy", "--budget", "--set", "--policy-file"}
    | {"--alpha", "--tokens", "--mass", "--reduce", "--scope"},
    "Where the KV cache lives": {
        "--hot-bytes",
        "--device-bytes",
        "--cold-dir",
        "--device",
        "--xclbin",
        "--device-keys",
        "--device-split",
        "--on-device-error",
        "--balance",
        "--lookahead",
        "--scoring-bytes",
        "--scoring-copy",
        "--threads",
        "--prefill-chunk",
    },
    "The text": {"--max-new-tokens", "--temperature", "--top-p", "--seed"},
    "Output": {"--trace", "--json", "--debug"},
}


def test_help_names_every_command_and_gives_examples(hill: Any) -> None:
    shown = hill("--help")
    assert shown.code == 0
    for word in ("generate", "models", "policies", "--version", "Examples"):
        assert word in shown.out


def test_without_a_command_the_help_is_shown(hill: Any) -> None:
    shown = hill()
    assert "Usage: hillinfer" in shown.out + shown.err
    assert "error:" not in shown.err


def test_generate_help_has_every_option_in_a_panel(hill: Any) -> None:
    shown = hill("generate", "--help")
    panels = dict(re.findall(r"╭─ ([^─]+) ─.*?\n(.*?)\n╰", shown.out, re.DOTALL))
    panels.pop("Options")
    assert {title: set(re.findall(r"│ (--[a-z-]+) ", body)) for title, body in panels.items()} == PANELS
    assert "[default: (20%)]" in shown.out


def _commands(group: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        yield (*names, name), command
        if hasattr(command, "commands"):
            yield from _commands(command, *names, name)


@pytest.mark.parametrize(("names", "command"), [*_commands(typer.main.get_command(app))])
def test_every_command_is_described_and_has_json_and_debug(hill: Any, names: tuple[str, ...], command: Any) -> None:
    shown = hill(*names, "--help")
    assert shown.code == 0
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    assert {option for option in options if not re.fullmatch("-[a-z]|--[a-z][a-z-]*|[a-z]+", option)} == set()
    if not hasattr(command, "commands"):
        assert {"--json", "--debug"} <= options
        assert command.help


def test_version_names_the_libraries_too(hill: Any) -> None:
    shown = hill("--version")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        f"hillinfer {__version__}",
        f"torch {metadata.version('torch')}",
        f"transformers {metadata.version('transformers')}",
    ]


@pytest.mark.parametrize("arguments", [["--help"], ["generate", "--help"], ["--version"], ["models"]])
def test_torch_is_not_imported_before_it_is_needed(arguments: list[str]) -> None:
    code = f"""if True:
        import sys
        from hillinfer.cli import run
        assert run({arguments}) == 0
        assert not {{"torch", "transformers"}} & set(sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
