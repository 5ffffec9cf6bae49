"""What the language does not allow: each program is refused with file, line and rule, before anything is written.

The line is that of the ``// here`` in the program.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hls2rtl.errors import RULES, RuleError
from hls2rtl.flow import compile_kernel

_HEAD = """\
#include <ap_int.h>
#include <hls_stream.h>
typedef ap_uint<64> word_t;
typedef hls::stream<word_t> words_t;
"""
_TOP = """
extern "C" void top(const word_t *p, word_t *q, unsigned n) {
#pragma HLS INTERFACE m_axi port=p bundle=gmem0
#pragma HLS INTERFACE m_axi port=q bundle=gmem1
#pragma HLS DATAFLOW
  words_t s("s"), t("t");
  read(p, s, n);
  work(s, t, n);
  write(t, q, n);
}
"""
_READ = """
void read(const word_t *p, words_t &s, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
#pragma HLS PIPELINE II=1
    s.write(p[i]);
  }
}
"""
_WRITE = """
void write(words_t &t, word_t *q, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
#pragma HLS PIPELINE II=1
    q[i] = t.read();
  }
}
"""
_COPY = "t.write(s.read());"


def _work(body: str, before: str = "", outside: str = "") -> str:
    return f"""
{outside}
void work(words_t &s, words_t &t, unsigned n) {{
{before}
  for (unsigned i = 0; i < n; i++) {{
#pragma HLS PIPELINE II=1
{body}
  }}
}}
"""


def _program(read: str = _READ, work: str = _work(_COPY), top: str = _TOP) -> str:
    return _HEAD + read + work + _WRITE + top


def _in_work(body: str, before: str = "", outside: str = "") -> str:
    """A program whose middle process has this in its loop, before it, and outside."""
    return _program(work=_work(body, before, outside))


def _in_read(access: str, loop: str = "i++) {") -> str:
    """A program that reads its pointer like this."""
    return _program(read=_READ.replace("s.write(p[i]);", access).replace("i++) {", loop))


def _in_top(*changes: tuple[str, str]) -> str:
    """A program whose top differs like this."""
    top = _TOP
    for old, new in changes:
        assert old in top, old
        top = top.replace(old, new)
    return _program(top=top)


def _loop_in_work(head: str, body: str) -> str:
    """A program whose middle process is this loop."""
    return _program(work=f"void work(words_t &s, words_t &t, unsigned n) {{\n(void)n; {head}\n{body}\n}}\n}}")


_FIRST_LINE = ("unsigned n) {", "unsigned n) { // here")
_FIRST_STREAM = ('words_t s("s"), t("t");', 'words_t s("s"); // here\n  words_t t("t");')

# name -> the rule, the program
_PROGRAMS: dict[str, tuple[str, str]] = {
    "float": ("float", _in_work("float f = n * 0.5f; // here\n t.write(s.read() + (unsigned)f);")),
    "double into ap_int": ("float", _in_work("word_t x = 0.5 * (int)n; // here\n t.write(x + s.read());")),
    "division": ("division", _in_work("t.write(word_t(s.read() / word_t(n))); // here")),
    "remainder by a constant": ("division", _in_work("t.write(word_t(i % 3u + s.read())); // here")),
    "recursion": (
        "recursion",
        _in_work(
            "t.write(s.read() + sum(n));",
            outside="static unsigned sum(unsigned k) { // here\n return k < 2u ? k : sum(k - 1u) * sum(k - 2u); }",
        ),
    ),
    "mixed signs, ap_int": (
        "mixed-sign",
        _in_work("word_t x = s.read(); ap_int<9> y = x;\n if (x > y) x = 0; // here\n t.write(x);"),
    ),
    "mixed signs, ap_int and int": (
        "mixed-sign",
        _in_work("word_t x = s.read();\n if (x > -1) x = 0; // here\n t.write(x);"),
    ),
    "mixed signs, built-in": ("mixed-sign", _in_work("int k = n + 1;\n if (k < n) t.write(s.read()); // here")),
    "loop in a loop": (
        "loop",
        _in_work("word_t x = s.read();\n for (unsigned k = 0; k < n; k++) { // here\n x = x + x; }\n t.write(x);"),
    ),
    "unrolled loop without a constant count": (
        "loop",
        _in_work(
            "word_t x = s.read();\n for (unsigned k = 0; k < (n & 7u); k++) { // here\n#pragma HLS UNROLL\n"
            "x = x ^ word_t(x >> 1); }\n t.write(x);"
        ),
    ),
    "pipelined loop in a pipelined loop": (
        "loop",
        _in_work("for (unsigned k = 0; k < 4u; k++) {\n#pragma HLS PIPELINE // here\n t.write(s.read()); }"),
    ),
    "loop without a pragma": ("loop", _loop_in_work("for (unsigned i = 0; i < n; i++) { // here", _COPY)),
    "loop without an end": ("loop", _loop_in_work("while (true) { // here", f"#pragma HLS PIPELINE\n{_COPY}")),
    "jump into a loop": (
        "loop",
        _program(
            work="void work(words_t &s, words_t &t, unsigned n) {\n unsigned i = 0; if (n & 4u) goto inside;\n"
            "for (; i < n; i++) { // here\n#pragma HLS PIPELINE\n t.write(s.read());\n inside: i = i ^ 1u; }\n}"
        ),
    ),
    "pipeline with II=2": ("pragma", _in_work("#pragma HLS PIPELINE II=2 // here\n" + _COPY).replace("II=1\n#", "\n#")),
    "unroll by a factor": (
        "pragma",
        _in_work("for (int k = 0; k < 4; k++) {\n#pragma HLS UNROLL factor=2 // here\n }" + _COPY),
    ),
    "unknown pragma": ("pragma", _in_work("#pragma HLS PIPELIN // here\n" + _COPY)),
    "pragma outside of a loop": ("pragma", _in_work(_COPY, before="#pragma HLS PIPELINE // here")),
    "depth of no stream": (
        "pragma",
        _in_top(("  words_t s(", "#pragma HLS STREAM variable=u depth=4 // here\n  words_t s(")),
    ),
    "depth that is no number": (
        "pragma",
        _in_top(("  words_t s(", "#pragma HLS STREAM variable=s depth=DEPTH // here\n  words_t s(")),
    ),
    "pointer arithmetic": ("burst", _in_read("s.write(p[2 * i]); // here")),
    "pointer from an offset": ("burst", _in_read("s.write(p[i + 1u]); // here")),
    "moving pointer": ("pointer", _in_read("s.write(*p++);", "i++) { // here")),
    "conditional access": ("burst", _in_read("if (i & 1u) s.write(p[i]); else s.write(word_t(0)); // here")),
    "cast of a pointer": ("burst", _in_read("s.write(word_t(((const ap_uint<8> *)p)[8 * i])); // here")),
    "pointer as a number": ("pointer", _in_read("s.write(p[i] + (unsigned long)p); // here")),
    "pointer accessed twice": ("burst", _in_read("s.write(p[i] + p[i + 1u]); // here")),
    "burst of unknown length": ("burst", _in_read("s.write(p[i]); // here\n if (i == 7u) break;")),
    "volatile pointer": (
        "process",
        _program(
            read=_READ.replace("const word_t *p", "const volatile unsigned *p").replace(
                "s.write(p[i]);", "s.write(word_t(p[i])); // here"
            ),
            top=_TOP.replace("const word_t *p", "const unsigned *p"),
        ),
    ),
    "result through a reference": (
        "process",
        _program(
            read=_READ.replace("unsigned n)", "unsigned &n)")
            .replace("i++) {", "i++) { // here")
            .replace("s.write(p[i]);", "s.write(p[i]); n = 0;")
        ),
    ),
    "two readers": ("stream", _in_top(_FIRST_STREAM, ("write(t, q, n);", "write(s, q, n);"))),
    "two writers": ("stream", _in_top(_FIRST_STREAM, ("work(s, t, n);", "work(s, s, n);"))),
    "stream that nobody uses": (
        "stream",
        _in_top(('words_t s("s"), t("t");', 'words_t s("s"), t("t");\n words_t u("u"); // here')),
    ),
    "stream that nobody reads": (
        "stream",
        _program(work=_work("t.write(word_t(n));"), top=_TOP.replace(*_FIRST_STREAM)),
    ),
    "stream written and read by one process": ("stream", _in_work("s.write(word_t(1)); t.write(s.read()); // here")),
    "two reads in a turn": ("stream-access", _in_work("word_t x = s.read();\n t.write(x + s.read()); // here")),
    "two writes in a turn": (
        "stream-access",
        _in_work("word_t x = s.read(); t.write(x);\n if (x[0]) t.write(x); // here"),
    ),
    "non-blocking read": ("non-blocking", _in_work("word_t x = 0; s.read_nb(x); // here\n t.write(x);")),
    "non-blocking write": ("non-blocking", _in_work("t.write_nb(s.read()); // here")),
    "empty": ("non-blocking", _in_work("if (!s.empty()) t.write(s.read()); // here")),
    "static variable": ("global", _in_work("static unsigned k = 0; k++; // here\n t.write(s.read() + k);")),
    "global variable": ("global", _in_work("k++; // here\n t.write(s.read() + k);", outside="unsigned k;")),
    "constant table": (
        "global",
        _in_work(
            "t.write(s.read() + table[i & 3u]); // here", outside="static const unsigned table[4] = {3, 1, 4, 1};"
        ),
    ),
    "process with a result": (
        "process",
        _program(
            work=_work(_COPY)
            .replace("void work", "int work")
            .replace(*_FIRST_LINE)
            .replace("\n  }\n}", "\n } return 0; }")
        ),
    ),
    "process that takes a struct": (
        "process",
        _program(
            work="struct pair { long a, b, c; };\n"
            + _work(_COPY).replace("unsigned n) {", "pair n0) { // here\n unsigned n = n0.a;"),
            top=_TOP.replace("work(s, t, n);", "work(s, t, pair());"),
        ),
    ),
    "library function": ("call", _in_work("t.write(s.read() + rand()); // here", outside='extern "C" int rand();')),
    "function pointer": (
        "call",
        _in_work(
            "t.write(s.read() + f(i)); // here",
            before="unsigned (*f)(unsigned) = n ? one : two;",
            outside="unsigned one(unsigned k); unsigned two(unsigned k);",
        ),
    ),
    "process that is declared only": (
        "call",
        _program(work="void work(words_t &s, words_t &t, unsigned n);", top=_TOP.replace(*_FIRST_LINE)),
    ),
    "array cleared as a whole": (
        "memory",
        _in_work(
            "word_t x = s.read(); t.write(m[x.to_uint() & 63u]); m[i & 63u] = x;",
            before="word_t m[64];\n __builtin_memset(m, 0, sizeof m); // here",
        ),
    ),
    "array in parts of its elements": (
        "memory",
        _in_work("m[i & 7u] = s.read();\n t.write(word_t(((ap_uint<8> *)m)[i & 63u])); // here", before="word_t m[8];"),
    ),
    "top without DATAFLOW": ("top", _in_top(_FIRST_LINE, ("#pragma HLS DATAFLOW\n", ""))),
    "top that computes": ("top", _in_top(("work(s, t, n);", "work(s, t, n + 1u); // here"))),
    "process under a condition": ("top", _in_top(_FIRST_LINE, ("work(s, t, n);", "if (n > 3u) work(s, t, n);"))),
    "two pointers on a bundle": ("interface", _in_top(_FIRST_LINE, ("bundle=gmem1", "bundle=gmem0"))),
    "pointer without a bundle": (
        "interface",
        _in_top(_FIRST_LINE, ("#pragma HLS INTERFACE m_axi port=q bundle=gmem1\n", "")),
    ),
    "interface of no argument": ("pragma", _in_top(("port=q bundle=gmem1", "port=r bundle=gmem1 // here"))),
    "interface of another kind": ("pragma", _in_top(("m_axi port=q bundle=gmem1", "ap_fifo port=q // here"))),
    "signed one-bit integer": ("width", _in_work("ap_int<1> x = s.read(); // here\n t.write(word_t(x));")),
    "not C++": ("c++", _in_work("word_t x = s.reed(); // here\n t.write(x);")),
}


def test_there_are_programs_for_most_rules() -> None:
    covered = {rule for rule, _ in _PROGRAMS.values()}
    assert covered <= set(RULES)
    assert set(RULES) - covered <= {"unsupported"}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_refused(name: str, tmp_path: Path) -> None:
    rule, text = _PROGRAMS[name]
    source = tmp_path / "program.cpp"
    source.write_text(text)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "// here" in line)
    with pytest.raises(RuleError) as caught:
        compile_kernel(source, "top")
    error = caught.value
    assert error.rule == rule, error
    assert error.location is not None, error
    assert (Path(error.location.file).name, error.location.line) == ("program.cpp", line), error
    assert str(error).startswith(f"{error.location.file}:{line}: ")


def test_the_legal_frame_of_these_programs_compiles(tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text(_in_work(_COPY))
    compile_kernel(source, "top")
