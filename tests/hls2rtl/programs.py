"""Random legal programs: chains of processes over 64-bit streams, with everything in them that the language allows.

Each program is a top ``void NAME(in, out, n, a, b)``. What it does is left to chance, what it consumes is known: n
elements and ``extra``. Only shifts below the width, comparisons of equal signs and defined values are used, so that the
C++ means the same to every compiler.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

_WIDTHS = (2, 3, 5, 8, 11, 16, 17, 23, 24, 32, 40, 61)
WORD = "ap_uint<64>"


@dataclass(frozen=True)
class Variable:
    name: str
    width: int
    signed: bool

    @property
    def type(self) -> str:
        return f"ap_{'int' if self.signed else 'uint'}<{self.width}>"


@dataclass(frozen=True)
class Program:
    """text: processes and top. extra: elements that it reads besides n."""

    name: str
    text: str
    extra: int


@dataclass
class _Body:
    """Statements of one loop: variables in scope, those that can be assigned, and the lines so far."""

    rng: random.Random
    indent: str
    variables: list[Variable] = field(default_factory=list)
    assignable: list[Variable] = field(default_factory=list)
    memory: str = ""
    depth: int = 0
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def fresh(self, expression: str, width: int | None = None, signed: bool | None = None) -> Variable:
        width = width or self.rng.choice(_WIDTHS)
        signed = self.rng.random() < 0.5 if signed is None else signed
        made = Variable(f"v{self.count}", width, signed)
        self.count += 1
        self.line(f"{made.type} {made.name} = {expression};")
        self.variables.append(made)
        if self.rng.random() < 0.4:
            self.assignable.append(made)
        return made

    # ------------------------------------------------------------------------------------------- expressions

    def pick(self, most: int = 64, signed: bool | None = None) -> Variable:
        fitting = [v for v in self.variables if v.width <= most and signed in (None, v.signed)]
        return self.rng.choice(fitting or self.variables)

    def condition(self) -> str:
        v = self.pick(32)
        kind = self.rng.randrange(5)
        if kind == 0:
            return f"{v.name}[{self.rng.randrange(v.width)}]"
        if kind == 1:
            value = self.rng.randrange(1 << min(v.width - 1, 12))
            return f"{v.name} {self.rng.choice(('==', '<', '>', '!='))} {v.type}({value})"
        if kind == 2:
            return f"{v.name}[{self.rng.randrange(v.width)}] && {self.condition()}"
        other = self.pick(64, v.signed)
        cast = other.name if other.signed == v.signed else f"{v.type}({other.name})"
        return f"{v.name} {self.rng.choice(('<', '<=', '>', '>=', '==', '!='))} {cast}"

    def expression(self) -> str:
        rng, a, b = self.rng, self.pick(), self.pick()
        kind = rng.randrange(12)
        if kind < 3:
            return f"{a.name} {rng.choice('+-')} {b.name}"
        if kind == 3:
            return f"{self.pick(40).name} * {self.pick(40).name}"
        if kind == 4:
            return f"{a.name} {rng.choice('&|^')} {b.name}"
        if kind == 5:
            return f"({self.condition()}) ? ap_int<66>({a.name}) : ap_int<66>({b.name})"
        if kind == 6:
            low = rng.randrange(a.width)
            return f"{a.name}.range({rng.randrange(low, a.width)}, {low})"
        if kind == 7:
            return f"{a.name} {rng.choice(('<<', '>>'))} {rng.randrange(a.width)}"
        if kind == 8:
            bits = max(1, a.width.bit_length() - 1)
            return f"{a.name} {rng.choice(('<<', '>>'))} ap_uint<{bits}>({b.name})"
        if kind == 9:
            return rng.choice((f"-{a.name}", f"~{a.name}"))
        if kind == 10 and self.memory:
            return f"{self.memory}[{self.address()}]"
        v = self.pick(32)
        return f"{v.name}.to_uint() * {rng.randrange(1, 9)}u + (unsigned)a"

    def address(self) -> str:
        v = self.pick(32)
        return f"{v.name}.to_uint() & {self.depth - 1}u"

    # -------------------------------------------------------------------------------------------- statements

    def statements(self, number: int, nesting: int = 0) -> None:
        for _ in range(number):
            kind = self.rng.random()
            if kind < 0.6 or nesting > 2:
                self.fresh(self.expression())
            elif kind < 0.8:
                self.branch(nesting)
            elif kind < 0.87:
                self.switch()
            elif kind < 0.93:
                self.lanes()
            elif self.memory:
                self.line(f"{self.memory}[{self.address()}] = {self.pick(32).name};")
            elif self.assignable:
                self.assign()

    def assign(self) -> None:
        target = self.rng.choice(self.assignable)
        if self.rng.random() < 0.3 and not target.signed:
            low = self.rng.randrange(target.width)
            self.line(f"{target.name}.range({self.rng.randrange(low, target.width)}, {low}) = {self.pick().name};")
        else:
            self.line(f"{target.name} = {self.expression()};")

    def branch(self, nesting: int) -> None:
        if not self.assignable:
            return
        outer, indent, assignable = len(self.variables), self.indent, list(self.assignable)
        for number, head in enumerate((f"if ({self.condition()}) {{", "} else {")):
            if number and self.rng.random() < 0.5:
                break
            self.line(head)
            self.indent += "  "
            self.statements(self.rng.randrange(2), nesting + 1)
            self.assignable = assignable[:]
            self.assign()
            if self.memory and self.rng.random() < 0.3:
                self.line(f"{self.memory}[{self.address()}] = {self.pick(32).name};")
            del self.variables[outer:]
            self.indent = indent
        self.line("}")
        self.assignable = assignable

    def switch(self) -> None:
        if not self.assignable:
            return
        self.line(f"switch ({self.pick(32).name}.to_uint() & 7u) {{")
        target = self.rng.choice(self.assignable)
        for case in self.rng.sample(range(8), self.rng.randrange(2, 6)):
            self.line(f"case {case}: {target.name} = {self.expression()}; break;")
        self.line(f"default: {target.name} = {self.pick().name};")
        self.line("}")

    def lanes(self) -> None:
        """An array of lanes, filled and summed in unrolled loops, as a tree."""
        name, source = f"lane{self.count}", self.fresh("x", 64, False)
        self.line(f"ap_int<20> {name}[4];")
        self.line("for (int k = 0; k < 4; k++) {")
        self.line("#pragma HLS UNROLL")
        self.line(f"  ap_int<16> part = {source.name}.range(16 * k + 15, 16 * k);")
        self.line(f"  {name}[k] = {self.rng.choice(('part', 'part - ap_int<9>(k)', 'part >> k', '~part'))};")
        self.line("}")
        self.line("for (int w = 2; w > 0; w >>= 1) {")
        self.line("#pragma HLS UNROLL")
        self.line("  for (int k = 0; k < 2; k++) {")
        self.line("#pragma HLS UNROLL")
        self.line(f"    if (k < w) {name}[k] = {name}[2 * k] + {name}[2 * k + 1];")
        self.line("  }")
        self.line("}")
        self.fresh(f"{name}[0]")


@dataclass
class _Generator:
    rng: random.Random
    name: str
    processes: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    streams: list[tuple[str, str, int]] = field(default_factory=list)  # name, element type, depth

    def program(self) -> Program:
        rng = self.rng
        extra = rng.choice((0, 0, 5, 64))
        source, times, plus = "in", 1, extra
        stages = rng.randrange(1, 4)
        for stage in range(stages):
            target = "out" if stage == stages - 1 else self.stream()
            kind = rng.randrange(7)
            if kind == 0 and times < 3:
                factor = rng.choice((2, 3))
                self.expand(source, target, times, plus, factor)
                times, plus = times * factor, plus * factor
            elif kind == 1 and plus:
                taken = rng.randrange(1, min(plus, 64) + 1)
                self.preload(source, target, times, plus - taken, taken)
                plus -= taken
            elif kind == 2:
                self.fork(source, target, times, plus)
            elif kind == 3:
                self.route(source, target, times, plus)
            elif kind == 4:
                self.two_loops(source, target, times, plus)
            else:
                self.map(source, target, times, plus)
            source = target
        parameters = f"hls::stream<{WORD} > &in, hls::stream<{WORD} > &out, unsigned n, int a, int b"
        top = [f'extern "C" void {self.name}({parameters}) {{']
        top += ["#pragma HLS DATAFLOW"]
        for name, element, depth in self.streams:
            top += [f'  hls::stream<{element} > {name}("{name}");', f"#pragma HLS STREAM variable={name} depth={depth}"]
        top += ["  DATAFLOW_REGION;", *self.calls, "}"]
        return Program(self.name, "\n".join([*self.processes, *top, ""]), extra)

    # --------------------------------------------------------------------------------------------- plumbing

    def stream(self, element: str = WORD) -> str:
        name = f"{self.name}_s{len(self.streams)}"
        self.streams.append((name, element, self.rng.choice((2, 3, 4, 16, 40))))
        return name

    def add(self, kind: str, streams: list[tuple[str, str, str]], lines: list[str]) -> None:
        """One process and its call. streams: parameter, the top's stream, element type."""
        name = f"{self.name}_{kind}{len(self.calls)}"
        parameters = ", ".join(f"hls::stream<{element} > &{parameter}" for parameter, _, element in streams)
        self.processes.append(
            "\n".join([f"static void {name}({parameters}, unsigned n, int a, int b) {{", *lines, "}"])
        )
        self.calls.append(f"  PROCESS({name}, {', '.join(actual for _, actual, _ in streams)}, n, a, b);")

    def prologue(self, times: int, plus: int) -> list[str]:
        """Values computed before the loop, from the scalars."""
        rng = self.rng
        lines = [f"  const unsigned count = n * {times}u + {plus}u;"]
        lines += [f"  ap_int<{rng.choice((17, 24, 32))}> s0 = a {rng.choice('+-')} {rng.randrange(100)};"]
        lines += [f"  ap_uint<{rng.choice((9, 17, 30))}> s1 = b;"]
        if rng.random() < 0.6:
            lines += [f"  if (a > {rng.choice(('b', '0', '77'))}) s0 = b;"]
        if rng.random() < 0.4:
            lines += ["  if (b < 0) { s1 = s1 * s0; if (a & 4) s0 = s0 + s1; } else s1 = 5;"]
        if rng.random() < 0.3:
            lines += ["  unsigned product = (unsigned)a * (unsigned)b;", "  s1 = product >> 3;"]
        return [*lines, "  ap_uint<4> t = 0;"]

    def head(self, count: str = "count") -> list[str]:
        """A pipelined loop over ``count`` turns, in one of its spellings."""
        spelling = self.rng.randrange(5)
        heads = {
            0: f"for (int i = 0; i < (int){count}; i++) {{",
            1: f"for (unsigned i = 1; i <= {count}; i++) {{",
            2: f"for (unsigned i = {count}; i > 0; i--) {{",
        }
        return ["  " + heads.get(spelling, f"for (unsigned i = 0; i < {count}; i++) {{"), "#pragma HLS PIPELINE II=1"]

    def body(self, memory: str = "", depth: int = 0) -> _Body:
        body = _Body(self.rng, "    ", memory=memory, depth=depth)
        body.variables = [Variable("x", 64, False), Variable("s0", 17, True), Variable("s1", 9, False)]
        body.variables += [Variable("c", 32, False)]
        body.line("ap_uint<32> c = (unsigned)i;")
        return body

    def tail(self, body: _Body) -> str:
        """Updates the loop-carried variables and gives the value to write."""
        rng = self.rng
        body.line(f"s0 = s0 {rng.choice('+-^')} {body.pick(40).name};")
        body.line(f"if ({body.condition()}) s1 = {body.pick().name};")
        body.line(f"t = t == ap_uint<4>(0) ? ap_uint<4>({rng.randrange(1, 9)}) : ap_uint<4>(t - 1);")
        last = body.variables[-5:]
        return " ^ ".join(f"{WORD}({v.name})" for v in last)

    # -------------------------------------------------------------------------------------------- processes

    def map(self, source: str, target: str, times: int, plus: int) -> None:
        """One in, one out, perhaps with an array that is read and written."""
        depth = self.rng.choice((0, 4, 16, 256))
        lines = self.prologue(times, plus)
        if depth:
            lines += [f"  ap_int<20> m[{depth}];", f"  for (unsigned i = 0; i < {depth}; i++) {{"]
            lines += ["#pragma HLS PIPELINE II=1", f"    m[i] = i * {self.rng.randrange(1000)}u;", "  }"]
        body = self.body("m" if depth else "", depth)
        body.line(f"const {WORD} x = in.read();")
        body.statements(self.rng.randrange(3, 10))
        value = self.tail(body)
        body.line(f"out.write({value});")
        self.add("map", [("in", source, WORD), ("out", target, WORD)], [*lines, *self.head(), *body.lines, "  }"])

    def expand(self, source: str, target: str, times: int, plus: int, factor: int) -> None:
        """Reads in the first of every ``factor`` turns."""
        lines = [*self.prologue(times * factor, plus * factor), "  ap_uint<2> turn = 0;", f"  {WORD} x = 0;"]
        body = self.body()
        body.line("if (turn == ap_uint<2>(0)) x = in.read();")
        body.statements(self.rng.randrange(2, 7))
        value = self.tail(body)
        body.line(f"out.write({value});")
        body.line(f"turn = turn == ap_uint<2>({factor - 1}) ? ap_uint<2>(0) : ap_uint<2>(turn + 1);")
        self.add("expand", [("in", source, WORD), ("out", target, WORD)], [*lines, *self.head(), *body.lines, "  }"])

    def preload(self, source: str, target: str, times: int, plus: int, taken: int) -> None:
        """Fills an array from the stream, then looks things up in it: block RAM if it is large."""
        depth = self.rng.choice((64, 128, 256))
        width = self.rng.choice((13, 48, 64))
        lines = [*self.prologue(times, plus), f"  ap_uint<{width}> m[{depth}];"]
        lines += [
            f"  for (unsigned i = 0; i < {depth}u; i++) {{",
            "#pragma HLS PIPELINE II=1",
            "    m[i] = i + n;",
            "  }",
        ]
        lines += [f"  for (unsigned i = 0; i < {taken}u; i++) {{", "#pragma HLS PIPELINE II=1"]
        lines += [f"    m[i & {depth - 1}u] = in.read();", "  }"]
        body = self.body()
        body.line(f"const {WORD} x = in.read();")
        body.line(f"const ap_uint<{width}> found = m[ap_uint<32>(x.range(31, 0)).to_uint() & {depth - 1}u];")
        body.variables.append(Variable("found", width, False))
        body.statements(self.rng.randrange(2, 7))
        value = self.tail(body)
        body.line(f"out.write({value});")
        self.add("preload", [("in", source, WORD), ("out", target, WORD)], [*lines, *self.head(), *body.lines, "  }"])

    def fork(self, source: str, target: str, times: int, plus: int) -> None:
        """Two streams side by side, joined again."""
        narrow = f"ap_uint<{self.rng.choice((3, 19, 33))}>"
        left, right = self.stream(), self.stream(narrow)
        lines = self.prologue(times, plus)
        body = self.body()
        body.line(f"const {WORD} x = in.read();")
        body.statements(self.rng.randrange(1, 4))
        value = self.tail(body)
        body.line(f"left.write({value});")
        body.line(f"right.write({body.pick().name});")
        ends = [("in", source, WORD), ("left", left, WORD), ("right", right, narrow)]
        self.add("fork", ends, [*lines, *self.head(), *body.lines, "  }"])
        lines = self.prologue(times, plus)
        body = self.body()
        body.line(f"const {narrow} y = right.read();")
        body.line(f"const {WORD} x = left.read();")
        body.variables.append(Variable("y", int(narrow[8:-1]), False))
        body.statements(self.rng.randrange(1, 4))
        value = self.tail(body)
        body.line(f"out.write({value});")
        ends = [("left", left, WORD), ("right", right, narrow), ("out", target, WORD)]
        self.add("join", ends, [*lines, *self.head(), *body.lines, "  }"])

    def route(self, source: str, target: str, times: int, plus: int) -> None:
        """Each element goes one of two ways, as data says; the other side takes it from there."""
        left, right, ways = self.stream(), self.stream(), self.stream("ap_uint<1>")
        lines = self.prologue(times, plus)
        body = self.body()
        body.line(f"const {WORD} x = in.read();")
        body.statements(self.rng.randrange(1, 4))
        value = self.tail(body)
        body.line(f"const {WORD} y = {value};")
        body.line(f"const ap_uint<1> way = {body.condition()};")
        body.line("if (way[0]) left.write(y); else right.write(y);")
        body.line("ways.write(way);")
        ends = [("in", source, WORD), ("left", left, WORD), ("right", right, WORD), ("ways", ways, "ap_uint<1>")]
        self.add("route", ends, [*lines, *self.head(), *body.lines, "  }"])
        lines = self.prologue(times, plus)
        body = self.body()
        body.line("const ap_uint<1> way = ways.read();")
        body.line(f"{WORD} x = 0;")
        body.line("if (way[0]) x = left.read(); else x = right.read();")
        body.statements(self.rng.randrange(1, 4))
        value = self.tail(body)
        body.line(f"out.write({value});")
        ends = [("left", left, WORD), ("right", right, WORD), ("ways", ways, "ap_uint<1>"), ("out", target, WORD)]
        self.add("gather", ends, [*lines, *self.head(), *body.lines, "  }"])

    def two_loops(self, source: str, target: str, times: int, plus: int) -> None:
        """Two loops in turn, one left early, with values computed between them from what the first has left."""
        lines = [*self.prologue(times, plus), f"  const unsigned half = count >> {self.rng.randrange(1, 3)};"]
        body = self.body()
        body.line("if (i == half) break;")
        body.line(f"const {WORD} x = in.read();")
        body.statements(self.rng.randrange(1, 4))
        value = self.tail(body)
        body.line(f"out.write({value});")
        lines += ["  unsigned done = 0;", "  for (unsigned i = 0; i < count; i++) {", "#pragma HLS PIPELINE II=1"]
        lines += [*body.lines, "    done = i + 1u;", "  }"]
        lines += [
            "  if (s0[2]) s1 = s0;",
            "  ap_uint<12> u = s1;",
            "  if (u > ap_uint<12>(9)) u = u + 1; else s0 = s0 + 3;",
        ]
        body = self.body()
        body.variables.append(Variable("u", 12, False))
        body.line(f"const {WORD} x = in.read();")
        body.statements(self.rng.randrange(1, 4))
        value = self.tail(body)
        body.line(f"out.write({value});")
        ends = [("in", source, WORD), ("out", target, WORD)]
        self.add("halves", ends, [*lines, *self.head("(count - done)"), *body.lines, "  }"])


def program(seed: int) -> Program:
    """The program of a seed, named ``program_SEED``."""
    return _Generator(random.Random(seed), f"program_{seed}").program()


def source(programs: list[Program]) -> str:
    """One translation unit with all of them."""
    includes = "#include <ap_int.h>\n#include <hls_stream.h>\n#include <dataflow.h>\n\n"
    return includes + "\n".join(each.text for each in programs)
