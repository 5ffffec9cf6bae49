"""Pragmas are read from the preprocessor's output, whatever stands around them."""

from __future__ import annotations

import pytest
from hls2rtl.errors import Location, RuleError
from hls2rtl.pragmas import read_pragmas

_SOURCE = """\
# 1 "/kernel/top.cpp"
static const char *text = "for (;;) { } // #pragma HLS UNROLL";
# 10 "/kernel/part.h" 1
template <int N> void part(int (&x)[N]) {
outer:
  for (int i = 0; i < N; i++) {
#pragma HLS PIPELINE II = 1
    for (int k = 0; k < 4; k++) x[k] += i;
    for (int k = 0; k < 4; k++) {
      if (x[k] == '{') x[k] = 0;
    }
  }
  for (int i = 0; i < N; i++) {
    #pragma HLS UNROLL
    x[i] = 1;
  }
}
# 3 "/kernel/top.cpp" 2
extern "C" void top(int *p) {
#pragma HLS DATAFLOW
#pragma HLS INTERFACE mode=m_axi port=p bundle=gmem7
#pragma HLS STREAM variable=s depth=16
#pragma HLS INLINE off
}
"""


def test_loops_get_clang_hints_on_their_own_lines() -> None:
    text = read_pragmas(_SOURCE).text
    assert len(text.splitlines()) == len(_SOURCE.splitlines())
    assert "HLS" not in text.replace('#pragma HLS UNROLL"', "")
    lines = [line.strip() for line in text.splitlines() if "_Pragma" in line]
    hints = [line.split("unroll(")[1].split(")")[0] for line in lines]
    assert hints == ["disable", "full", "full", "full"]  # loops inside a pipelined one are unrolled, as in Vitis
    assert lines[0].endswith("for (int i = 0; i < N; i++) {")


def test_the_end_of_a_do_loop_is_no_loop_and_a_while_after_a_block_is_one() -> None:
    text = read_pragmas(
        "void f() {\n do {\n#pragma HLS PIPELINE\n x(); } while (y);\n { z(); }\n"
        "while (y) {\n#pragma HLS PIPELINE\n x(); }\n}\n"
    ).text
    hint = '_Pragma("clang loop unroll(disable)") '
    assert f"{hint}do {{" in text
    assert "} while (y);" in text
    assert f"{hint}while (y) {{" in text


def test_what_else_they_say() -> None:
    pragmas = read_pragmas(_SOURCE)
    assert pragmas.loop_labels == {Location("/kernel/part.h", 12): "outer"}
    assert pragmas.dataflow == {"top"}
    assert pragmas.stream_depths == {("top", "s"): (16, Location("/kernel/top.cpp", 6))}
    (interface,) = pragmas.interfaces["top"]
    assert (interface.mode, interface.port, interface.bundle) == ("m_axi", "p", "gmem7")


@pytest.mark.parametrize(
    "pragma",
    [
        "",
        "PIPELINE II=2",
        "PIPELINE off",
        "UNROLL factor=2",
        "DATAFLO",
        "STREAM variable=s",
        "INTERFACE ap_fifo port=p",
    ],
)
def test_refused(pragma: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_pragmas(f'# 1 "/k.cpp"\nvoid f() {{\n  for (;;) {{\n#pragma HLS {pragma}\n  }}\n}}\n')
    assert caught.value.rule == "pragma"
    assert caught.value.location == Location("/k.cpp", 3)
