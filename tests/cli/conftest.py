"""What the command-line tests share: a tiny model on disk, a cache folder of their own, a way to run a command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import hillinfer
from hillinfer.cli import run
from tests.tiny import tiny_model_dir

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Outcome:
    """What a command left behind; without colours, which typer forces on some CI machines."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model_dir(tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """About 400 tokens of the tiny tokenizer."""
    path = tmp_path / "document.txt"
    path.write_text("The ferry leaves at seven, and the café opens at eight.\n" * 7, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    host = str(Path(hillinfer.__path__[0]).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([host, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))


@pytest.fixture
def hill(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """``hill("models", "--json")``: run one command line in this process."""

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, _COLOUR.sub("", captured.out), _COLOUR.sub("", captured.err))

    return call
