"""Reads the HLS pragmas out of preprocessed C++ and leaves clang's loop hints in their place.

Only the preprocessor's output is looked at, so pragmas in headers count, and comments and macros are gone. The text
keeps its lines: a hint is put in front of its loop's keyword, on the same line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from .errors import Location, RuleError, located

# Hints for Vitis which change nothing here: the schedule is derived from the program alone.
_IGNORED = {
    "INLINE",
    "ARRAY_PARTITION",
    "ARRAY_RESHAPE",
    "BIND_STORAGE",
    "BIND_OP",
    "RESOURCE",
    "DEPENDENCE",
    "LOOP_TRIPCOUNT",
    "LOOP_FLATTEN",
    "LATENCY",
    "STABLE",
}

_TOKEN = re.compile(
    r"""
      (?P<marker>^\#\s*(?:line\s+)?(?P<line>\d+)(?:\s+"(?P<file>(?:[^"\\]|\\.)*)")?[^\n]*$)
    | (?P<pragma>^[ \t]*\#[ \t]*pragma\b(?P<text>[^\n]*)$)
    | (?P<string>R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    | (?P<word>[A-Za-z_]\w*)
    | (?P<newline>\n)
    | (?P<symbol>[{}();:])
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)

LoopKind = Literal["pipeline", "unroll"]


@dataclass(frozen=True)
class Interface:
    """One ``#pragma HLS INTERFACE``: mode is m_axi, s_axilite, axis or ap_ctrl_chain."""

    mode: str
    port: str
    bundle: str
    location: Location


@dataclass
class Pragmas:
    """The pragmas of one translation unit, and the text that clang gets."""

    text: str = ""
    loop_labels: dict[Location, str] = field(default_factory=dict)
    stream_depths: dict[tuple[str, str], tuple[int, Location]] = field(default_factory=dict)  # by function, variable
    interfaces: dict[str, list[Interface]] = field(default_factory=dict)  # by function
    dataflow: set[str] = field(default_factory=set)


@dataclass
class _Scope:
    keyword: str  # for, while, do; a function's name; or empty
    offset: int
    is_loop: bool
    kind: LoopKind | None = None


def read_pragmas(preprocessed: str) -> Pragmas:
    """Raises RuleError for a pragma that is unknown, misplaced or asks for what the flow does not do."""
    found = Pragmas()
    hints: dict[int, LoopKind] = {}
    scopes: list[_Scope] = []
    file, line = "", 1
    parentheses = 0
    pending: _Scope | None = None  # a loop whose body has not begun
    last_word, label, called = "", "", ""
    last_symbol = ""

    def function() -> str:
        names = [scope.keyword for scope in scopes if not scope.is_loop and scope.keyword]
        return names[-1] if names else ""

    for token in _TOKEN.finditer(preprocessed):
        if token["newline"]:
            line += 1
        elif token["marker"]:
            line = int(token["line"]) - 1
            file = located(token["file"], 0).file if token["file"] else file
        elif token["string"]:
            line += token["string"].count("\n")
        elif token["pragma"]:
            words = token["text"].split()
            if words[:1] == ["HLS"]:
                _pragma(found, words[1:], function(), scopes, Location(file, line))
        elif token["word"]:
            word = token["word"]
            if word in ("for", "while", "do") and not (word == "while" and _ends_do(scopes, pending, last_symbol)):
                kind: LoopKind | None = "unroll" if any(scope.kind == "pipeline" for scope in scopes) else None
                pending = _Scope(word, token.start(), True, kind)
                if label and last_symbol == ":":
                    found.loop_labels[Location(file, line)] = label
            last_word = word
        else:
            symbol = token["symbol"]
            if symbol == "(":
                if parentheses == 0:
                    called = last_word
                parentheses += 1
            elif symbol == ")":
                parentheses -= 1
            elif symbol == ":":
                label = last_word
            elif symbol == "{" and parentheses == 0:
                inside_function = any(scope.keyword for scope in scopes)
                is_function = last_symbol == ")" and not inside_function
                scopes.append(pending or _Scope(called if is_function else "", token.start(), False))
                pending = None
            elif symbol == "}" and parentheses == 0 and scopes:
                scope = scopes.pop()
                if scope.is_loop and scope.kind:
                    hints[scope.offset] = scope.kind
            elif symbol == ";" and parentheses == 0 and pending:  # a body without braces
                if pending.kind:
                    hints[pending.offset] = pending.kind
                pending = None
            last_symbol = symbol
    found.text = _with_hints(preprocessed, hints)
    return found


def _ends_do(scopes: list[_Scope], pending: _Scope | None, last_symbol: str) -> bool:
    """Whether this ``while`` closes a do loop: only a guess is needed, its hint would be refused by clang."""
    del scopes
    return pending is None and last_symbol == "}"


def _with_hints(text: str, hints: dict[int, LoopKind]) -> str:
    clang = {"pipeline": "disable", "unroll": "full"}
    for offset in sorted(hints, reverse=True):
        text = f'{text[:offset]}_Pragma("clang loop unroll({clang[hints[offset]]})") {text[offset:]}'
    return re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+HLS\b[^\n]*$", "", text, flags=re.MULTILINE)


def _pragma(found: Pragmas, words: list[str], function: str, scopes: list[_Scope], at: Location) -> None:
    if not words:
        raise RuleError("pragma", "an empty HLS pragma", at)
    name = words[0].upper()
    options = dict(_option(word) for word in re.sub(r"\s*=\s*", "=", " ".join(words[1:])).split())
    if name in ("PIPELINE", "UNROLL"):
        _loop_pragma(name, options, scopes, at)
    elif name == "DATAFLOW":
        found.dataflow.add(function)
    elif name == "STREAM":
        depth = options.get("depth", "")
        if not depth.isdigit() or int(depth) < 1:
            raise RuleError("pragma", f"the depth of a stream is a number of 1 or more, not {depth!r}", at)
        found.stream_depths[function, options.get("variable", "")] = (int(depth), at)
    elif name == "INTERFACE":
        _interface_pragma(found, options, function, at)
    elif name not in _IGNORED:
        raise RuleError("pragma", f"pragma HLS {words[0]} is not known", at)


def _option(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key.lower(), value


def _loop_pragma(name: str, options: dict[str, str], scopes: list[_Scope], at: Location) -> None:
    innermost = next((scope for scope in reversed(scopes)), None)
    if innermost is None or not innermost.is_loop:
        raise RuleError("pragma", f"pragma HLS {name} stands in the body of a loop, as its first line", at)
    if name == "PIPELINE":
        if options.get("ii", "1") != "1":
            raise RuleError("pragma", f"loops are pipelined with II=1, not {options['ii']}", at)
        if "off" in options:
            raise RuleError("pragma", "every loop is pipelined", at)
        if any(scope.kind == "pipeline" for scope in scopes):
            raise RuleError("loop", "a pipelined loop inside a pipelined loop", at)
        innermost.kind = "pipeline"
    else:
        if "factor" in options:
            raise RuleError("pragma", "loops are unrolled wholly, not by a factor", at)
        innermost.kind = "unroll"


def _interface_pragma(found: Pragmas, options: dict[str, str], function: str, at: Location) -> None:
    modes = [key for key, value in options.items() if not value] + [options.get("mode", "")]
    mode = modes[0]
    if mode not in ("m_axi", "s_axilite", "axis", "ap_ctrl_chain"):
        raise RuleError("pragma", f"interface mode {mode!r} is not m_axi, s_axilite, axis or ap_ctrl_chain", at)
    bundle = options.get("bundle", "gmem" if mode == "m_axi" else "control")
    found.interfaces.setdefault(function, []).append(Interface(mode, options.get("port", ""), bundle, at))
