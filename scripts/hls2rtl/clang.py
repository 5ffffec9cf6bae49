"""C++ to LLVM IR with the clang that ziglang's wheel brings: one pinned version on every machine."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .errors import INSTALL, RuleError, ToolError, located
from .pragmas import Pragmas, read_pragmas

HEADERS = Path(__file__).resolve().parent / "include"

# The target is fixed so that the IR, and with it the RTL, does not depend on the machine.
_FLAGS = [
    "-target",
    "x86_64-linux-musl",
    "-std=c++14",
    "-O1",
    "-Xclang",
    "-disable-llvm-passes",
    "-gline-tables-only",
    "-fno-discard-value-names",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-fno-omit-frame-pointer",
    "-fno-threadsafe-statics",
    "-Wno-unknown-pragmas",
    "-Wno-unused-command-line-argument",
    "-Werror=sign-compare",
    "-fno-caret-diagnostics",
    "-fdiagnostics-absolute-paths",
    "-fno-color-diagnostics",
    "-ftemplate-backtrace-limit=0",
]
_DIAGNOSTIC = re.compile(r"^(?P<file>.+?):(?P<line>\d+):\d+: (?P<kind>fatal error|error|note): (?P<text>.*)$")


def compile_cpp(source: Path, include: Sequence[Path] = (), define: Sequence[str] = ()) -> tuple[str, Pragmas]:
    """The source's LLVM IR, not optimised, and its pragmas. Raises RuleError for errors in the source."""
    folders = [HEADERS, source.parent, *include]  # the flow's ap_int.h before any other
    common = [*(f"-I{folder}" for folder in folders), *(f"-D{name}" for name in define), "-D__HLS2RTL__"]
    preprocessed = _clang([*_FLAGS, *common, "-E", str(source)], None, source)
    pragmas = read_pragmas(preprocessed)
    return _clang([*_FLAGS, "-S", "-emit-llvm", "-x", "c++"], pragmas.text, source), pragmas


def _clang(arguments: list[str], text: str | None, source: Path) -> str:
    if importlib.util.find_spec("ziglang") is None:
        raise ToolError(f"clang is missing: {INSTALL}")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        if text is not None:
            (Path(folder) / "input.cpp").write_text(text)
            arguments = [*arguments, f"{folder}/input.cpp"]
        command = [sys.executable, "-m", "ziglang", "c++", *arguments, "-o", str(output)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return output.read_text()
    raise _first_error(result.stderr) or ToolError(f"clang failed on {source}: {result.stderr.strip()[-500:]}")


def _first_error(stderr: str) -> RuleError | None:
    """The first error, at the user's line: for one inside a header of the flow, where that was instantiated."""
    rule, message, location = "", "", None
    for line in stderr.splitlines():
        found = _DIAGNOSTIC.match(line)
        if not found:
            continue
        at = located(found["file"], int(found["line"]))
        if not message and found["kind"] != "note":
            message, location = found["text"], at
            named = re.search(r"\[([a-z-]+)\] ", message)
            rule = "mixed-sign" if "sign-compare" in message else named[1] if named else "c++"
            message = message[named.end() :] if named else message
        elif message and found["kind"] != "note":
            break
        elif message and location and Path(location.file).resolve().is_relative_to(HEADERS):
            location = at
    return RuleError(rule, message, location) if message else None
