"""The command: what it writes, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hls2rtl import passes
from hls2rtl.cli import main
from hls2rtl.errors import RULES, ToolError

_SCRIPTS = Path(__file__).parents[2] / "scripts"
_WIDEN = Path(__file__).parent / "widen.cpp"


def test_writes_the_kernel_and_its_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(_WIDEN), "--top", "widen", "--output", str(tmp_path / "a" / "b")]) == 0
    text = capsys.readouterr().out
    assert text == (tmp_path / "a" / "b" / "report.txt").read_text()
    assert max(map(len, text.splitlines())) <= 120
    verilog = (tmp_path / "a" / "b" / "widen.sv").read_text()
    for port in ("s_axi_control_AWADDR", "m_axi_gmem0_ARADDR", "m_axi_gmem1_WDATA", "ap_clk", "ap_rst_n", "interrupt"):
        assert f" {port}" in verilog
    report = json.loads((tmp_path / "a" / "b" / "report.json").read_text())
    assert report["top"] == "widen"
    offsets = {name: register["offset"] for name, register in report["registers"].items()}
    assert offsets == {
        "ap_ctrl": 0x00, "gie": 0x04, "ier": 0x08, "isr": 0x0C,
        "source": 0x10, "target": 0x1C, "n": 0x28, "bias": 0x30, "axi_error": 0x38,
    }  # fmt: skip
    assert report["axi_error_bits"] == {"gmem0": 0, "gmem1": 1}
    assert [(fifo["name"], fifo["width"], fifo["declared"]) for fifo in report["fifos"]] == [
        ("words", 32, 2),
        ("wide", 128, 2),
    ]
    loops = {loop["name"]: loop for process in report["processes"] for loop in process["loops"]}
    assert all(loop["ii"] == 1 and loop["depth"] >= 1 for loop in loops.values())


def test_the_same_source_gives_the_same_verilog_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for folder in (tmp_path, _WIDEN.parent):
        monkeypatch.chdir(folder)
        assert main([str(_WIDEN), "--top", "widen", "--output", str(tmp_path / "out"), "--quiet"]) == 0
        lines = (tmp_path / "out" / "widen.sv").read_text().splitlines()
        outputs.append([line.split("//")[0] for line in lines])
    assert outputs[0] == outputs[1]


def test_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hls2rtl", str(_WIDEN), "--top", "widen", "--output", str(tmp_path), "--json"]
    environment = os.environ | {"PYTHONPATH": str(_SCRIPTS)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout)["top"] == "widen"


def test_a_refusal_is_one_line_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.cpp"
    bad.write_text(_WIDEN.read_text().replace("words.read() + bias", "words.read() / 3"))
    line = next(n for n, text in enumerate(bad.read_text().splitlines(), 1) if "/ 3" in text)
    arguments = [str(bad), "--top", "widen", "--output", str(tmp_path / "out")]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("hls2rtl: ")
    assert f"bad.cpp:{line}: " in error
    assert error.endswith("[division]\n")
    assert not (tmp_path / "out").exists()
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["error"]
    assert (found["rule"], found["line"]) == ("division", line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "SOURCE, --top NAME and --output DIR are needed"),
        (["nowhere.cpp", "--top", "x", "--output", "y"], "there is no file nowhere.cpp"),
        ([str(_WIDEN), "--top", "x", "--output", "y", "--clock", "0.1"], "the clock period is 1 to 100 ns"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("top", "message"), [("narrow", "is not in the source"), ("join_words", 'is not extern "C"')])
def test_no_such_top(top: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(_WIDEN), "--top", top, "--output", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main([str(_WIDEN), "--top", "widen", "--output", str(tmp_path / "file")]) == 3
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("package", ["llvmlite", "ziglang"])
def test_a_missing_package_is_one_line(package: str, tmp_path: Path) -> None:
    arguments = [str(_WIDEN), "--top", "widen", "--output", str(tmp_path)]
    hide = f"import sys; sys.modules['{package}'] = None; from hls2rtl.cli import main; sys.exit(main({arguments}))"
    environment = os.environ | {"PYTHONPATH": str(_SCRIPTS)}
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "is missing: pip install ziglang==" in done.stderr


def test_a_defect_is_one_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(passes, "parse", lambda text: text[0:0].index("x"))
    arguments = [str(_WIDEN), "--top", "widen", "--output", str(tmp_path)]
    assert main(arguments) == 3
    assert "HLS2RTL_TRACEBACK=1" in capsys.readouterr().err
    monkeypatch.setenv("HLS2RTL_TRACEBACK", "1")
    with pytest.raises(ValueError, match="substring"):
        main(arguments)


def test_another_llvm_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "LLVM_MAJOR", 7)
    monkeypatch.setattr(passes, "_ready", False)
    with pytest.raises(ToolError, match=r"LLVM 7 is needed.*pip install"):
        passes.parse("")


def test_rules_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rules"]) == 0
    printed = capsys.readouterr().out
    assert all(rule in printed for rule in RULES)
    assert main(["--rules", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == RULES
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("--top", "--clock", "exit status", "example"))
