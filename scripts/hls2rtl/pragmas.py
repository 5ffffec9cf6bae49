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
    pipelined: list[tuple[Location, int]] = field(default_factory=list)  # where each loop begins; its last line
    stream_depths: dict[tuple[str, str], tuple[int, Location]] = field(default_factory=dict)  # by function, variable
    interfaces: dict[str, list[Interface]] = field(default_factory=dict)  # by function
    dataflow: set[str] = field(default_factory=set)


@dataclass
class _Scope:
    """A pair of braces. name: of a function; keyword: of a loop."""

    offset: int
    at: Location
    name: str = ""
    keyword: str = ""
    kind: LoopKind | None = None


def read_pragmas(preprocessed: str) -> Pragmas:
    """Raises RuleError for a pragma that is unknown, misplaced or asks for what the flow does not do."""
    return _Scanner(preprocessed).scan()


class _Scanner:
    """Walks over the tokens that matter: words, braces, and where lines and files begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = Pragmas()
        self.hints: dict[int, LoopKind] = {}
        self.scopes: list[_Scope] = []
        self.loop: _Scope | None = None  # whose body has not begun
        self.at = Location("", 1)
        self.parentheses = 0
        self.last = ""  # the word or symbol before
        self.word = ""  # the last word
        self.label = ""
        self.called = ""  # what the outermost parenthesis belongs to
        self.closed_do = False  # a do loop's body has just ended

    def scan(self) -> Pragmas:
        for token in _TOKEN.finditer(self.text):
            file, line = self.at.file, self.at.line
            if token["newline"]:
                self.at = Location(file, line + 1)
            elif token["marker"]:
                file = located(token["file"], 0).file if token["file"] else file
                self.at = Location(file, int(token["line"]) - 1)
            elif token["string"]:
                self.at = Location(file, line + token["string"].count("\n"))
            elif token["pragma"]:
                self._pragma(token["text"].split())
            elif token["word"]:
                self._word(token["word"], token.start())
            else:
                self._symbol(token["symbol"], token.start())
        self.found.text = _with_hints(self.text, self.hints)
        return self.found

    def _word(self, word: str, offset: int) -> None:
        if word in ("for", "while", "do") and not (word == "while" and self.closed_do):
            inside = any(scope.kind == "pipeline" for scope in self.scopes)
            self.loop = _Scope(offset, self.at, keyword=word, kind="unroll" if inside else None)
            if self.label and self.last == ":":
                self.found.loop_labels[self.at] = self.label
        self.last = self.word = word
        self.closed_do = False

    def _symbol(self, symbol: str, offset: int) -> None:
        self.closed_do = False
        if symbol == "(":
            self.called = self.word if self.parentheses == 0 else self.called
            self.parentheses += 1
        elif symbol == ")":
            self.parentheses -= 1
        elif symbol == ":":
            self.label = self.word
        elif self.parentheses == 0:
            self._statement(symbol, offset)
        self.last = symbol

    def _statement(self, symbol: str, offset: int) -> None:
        """A brace or semicolon outside of parentheses."""
        if symbol == "{":
            function = self.last == ")" and not self._function()
            self.scopes.append(self.loop or _Scope(offset, self.at, name=self.called if function else ""))
            self.loop = None
        elif symbol == "}" and self.scopes:
            self._end(self.scopes.pop())
        elif symbol == ";" and self.loop:  # a body without braces
            self._end(self.loop)
            self.loop = None

    def _end(self, scope: _Scope) -> None:
        if scope.kind:
            self.hints[scope.offset] = scope.kind
        if scope.kind == "pipeline":
            self.found.pipelined.append((scope.at, self.at.line))
        self.closed_do = scope.keyword == "do"

    def _function(self) -> str:
        return next((scope.name for scope in self.scopes if scope.name), "")

    # ------------------------------------------------------------------------------------------------ pragmas

    def _pragma(self, words: list[str]) -> None:
        if words[:1] != ["HLS"]:
            return
        if len(words) < 2:
            raise RuleError("pragma", "an empty HLS pragma", self.at)
        name = words[1].upper()
        options = dict(_option(word) for word in re.sub(r"\s*=\s*", "=", " ".join(words[2:])).split())
        if name == "PIPELINE":
            self._pipeline(options)
        elif name == "UNROLL":
            if "factor" in options:
                raise RuleError("pragma", "loops are unrolled wholly, not by a factor", self.at)
            self._innermost(name).kind = "unroll"
        elif name == "DATAFLOW":
            self.found.dataflow.add(self._function())
        elif name == "STREAM":
            self._stream(options)
        elif name == "INTERFACE":
            self._interface(options)
        elif name not in _IGNORED:
            raise RuleError("pragma", f"pragma HLS {words[1]} is not known", self.at)

    def _innermost(self, name: str) -> _Scope:
        if not self.scopes or not self.scopes[-1].keyword:
            raise RuleError("pragma", f"pragma HLS {name} stands in the body of a loop, as its first line", self.at)
        return self.scopes[-1]

    def _pipeline(self, options: dict[str, str]) -> None:
        loop = self._innermost("PIPELINE")
        if options.get("ii", "1") != "1":
            raise RuleError("pragma", f"loops are pipelined with II=1, not {options['ii']}", self.at)
        if "off" in options:
            raise RuleError("pragma", "every loop is pipelined", self.at)
        if any(scope.kind == "pipeline" for scope in self.scopes):
            raise RuleError("loop", "a pipelined loop inside a pipelined loop", self.at)
        loop.kind = "pipeline"

    def _stream(self, options: dict[str, str]) -> None:
        depth = options.get("depth", "")
        if not depth.isdigit() or int(depth) < 1:
            raise RuleError("pragma", f"the depth of a stream is a number of 1 or more, not {depth!r}", self.at)
        self.found.stream_depths[self._function(), options.get("variable", "")] = (int(depth), self.at)

    def _interface(self, options: dict[str, str]) -> None:
        mode = next((key for key, value in options.items() if not value), options.get("mode", ""))
        if mode not in ("m_axi", "s_axilite", "axis", "ap_ctrl_chain"):
            raise RuleError(
                "pragma", f"interface mode {mode!r} is not m_axi, s_axilite, axis or ap_ctrl_chain", self.at
            )
        bundle = options.get("bundle", "gmem" if mode == "m_axi" else "control")
        interface = Interface(mode, options.get("port", ""), bundle, self.at)
        self.found.interfaces.setdefault(self._function(), []).append(interface)


def _with_hints(text: str, hints: dict[int, LoopKind]) -> str:
    clang = {"pipeline": "disable", "unroll": "full"}
    for offset in sorted(hints, reverse=True):
        text = f'{text[:offset]}_Pragma("clang loop unroll({clang[hints[offset]]})") {text[offset:]}'
    return re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+HLS\b[^\n]*$", "", text, flags=re.MULTILINE)


def _option(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key.lower(), value
