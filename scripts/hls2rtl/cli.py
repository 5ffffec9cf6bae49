"""The command ``hls2rtl``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .delays import DEFAULT_CLOCK_NS
from .errors import INSTALL, RULES, RuleError, ToolError

_DESCRIPTION = """\
Compiles a kernel in Vitis-style HLS C++ to SystemVerilog, with open tools only.

The top is an extern "C" function with #pragma HLS DATAFLOW that declares streams and calls processes. A process is a
void function of pipelined loops over streams, local arrays, and pointers that it walks as p[i]. The RTL has the ports
of a Vitis kernel: s_axi_control with ap_ctrl_chain, and one m_axi master per pointer.
"""

_EPILOG = """\
writes
  DIR/NAME.sv       the kernel, module NAME
  DIR/report.json   stages, FIFOs, memories, register map
  DIR/report.txt    the same for reading

example
  hls2rtl hls/qk_score.cpp --top qk_score --output build/rtl --include hls

exit status
  0 written   1 the program breaks a rule   2 wrong usage   3 a tool is missing or failed
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.rules:
        _print_rules(options.json)
        return 0
    if options.source is None or options.top is None or options.output is None:
        return _failed(options.json, 2, "usage", "SOURCE, --top NAME and --output DIR are needed; see hls2rtl --help")
    if not options.source.is_file():
        return _failed(options.json, 2, "usage", f"there is no file {options.source}")
    if not 1.0 <= options.clock <= 100.0:
        return _failed(options.json, 2, "usage", f"the clock period is 1 to 100 ns, not {options.clock:g}")
    try:
        from .flow import compile_kernel  # needs llvmlite
    except ModuleNotFoundError as error:
        return _failed(options.json, 3, "tool", f"{error.name} is missing: {INSTALL}")
    try:
        result = compile_kernel(options.source, options.top, options.clock, options.include, options.define)
        result.write(options.output)
    except RuleError as error:
        return _refused(options.json, error)
    except ToolError as error:
        return _failed(options.json, 3, "tool", str(error))
    except OSError as error:
        return _failed(options.json, 3, "file", f"{error.filename}: {error.strerror}")
    except Exception as error:  # a defect of the flow: one line for its user, the traceback for its mender
        if os.environ.get("HLS2RTL_TRACEBACK"):
            raise
        message = f"a defect of hls2rtl, {type(error).__name__}: {error}; HLS2RTL_TRACEBACK=1 shows where"
        return _failed(options.json, 3, "defect", message)
    if options.json:
        print(json.dumps(result.report, indent=1))
    elif not options.quiet:
        print(result.text, end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "hls2rtl", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="SOURCE", type=Path, nargs="?", help="the C++ file")
    parser.add_argument("--top", metavar="NAME", help='the kernel: an extern "C" function of SOURCE')
    parser.add_argument("--output", metavar="DIR", type=Path, help="where the files go; made if missing")
    parser.add_argument(
        "--clock",
        metavar="NS",
        type=float,
        default=DEFAULT_CLOCK_NS,
        help="period to schedule for, by a model of delay (%(default)s, 300 MHz; three quarters are filled)",
    )
    parser.add_argument("--include", metavar="DIR", type=Path, action="append", default=[], help="a folder of headers")
    parser.add_argument("--define", metavar="X[=V]", action="append", default=[], help="a macro")
    parser.add_argument("--json", action="store_true", help="print the report, or the error, as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--rules", action="store_true", help="print the rules of the language, and stop")
    parser.add_argument("--version", action="version", version=f"hls2rtl {__version__}")
    return parser


def _print_rules(as_json: bool) -> None:
    if as_json:
        print(json.dumps(RULES, indent=1))
    else:
        for name, text in RULES.items():
            print(f"{name:14} {text}")


def _refused(as_json: bool, error: RuleError) -> int:
    if as_json:
        at = error.location
        place = {"file": at.file, "line": at.line} if at else {"file": None, "line": None}
        print(json.dumps({"error": {"rule": error.rule, "message": error.message, **place}}))
    else:
        print(f"hls2rtl: {error}", file=sys.stderr)
    return 1


def _failed(as_json: bool, status: int, kind: str, message: str) -> int:
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": message}}))
    else:
        print(f"hls2rtl: {message}", file=sys.stderr)
    return status
