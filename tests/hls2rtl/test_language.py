"""What the language allows, one small program each: RTL and native C++ agree, with stalls on both sides.

Many of these once were compiled wrongly; each comment says what went wrong or what LLVM makes of the code.
"""

from __future__ import annotations

from pathlib import Path

from tests.hls2rtl.harness import verify
from tests.hls2rtl.programs import WORD, Program, source

_LAUNCHES = [(0, 1, 2), (1, -5, 3), (2, 9, 9), (100, 100, -7), (3, -2147483648, 2147483647)]

# name -> (the body of one process with in, out, n, a, b; elements read besides n)
_BODIES = {
    # Phis outside of loops need the predicates of their edges: an if without else before a loop.
    "if_before_a_loop": """
        unsigned start = n; ap_int<20> bias = a;
        if (a > b) bias = b;
        if (b < 0) { bias = bias + 3; if (a & 1) start = start ^ 5u; } else if (a == 9) start = 77;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(in.read() + ap_uint<64>(bias) + start);
        }""",
    # Values of a first loop decide what the second does, through an if between them.
    "if_between_loops": """
        ap_uint<64> sum = 0; unsigned half = n >> 1;
        for (unsigned i = 0; i < half; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); sum = sum + x; out.write(x);
        }
        ap_uint<64> factor = 3;
        if (sum[0]) factor = 5;
        if (sum[1] && a > 0) { factor = factor + sum; if (sum[2]) factor = 9; }
        for (unsigned i = half; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(in.read() ^ factor);
        }""",
    # SimplifyCFG makes a switch of this, and a bit mask of that.
    "switch_of_ifs": """
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); unsigned k = ap_uint<4>(x.range(3, 0)).to_uint(); ap_uint<64> y = 0;
          if (k == 1u) y = 11; else if (k == 2u) y = x; else if (k == 9u) y = x >> 7; else if (k == 12u) y = 4;
          if (k == 3u || k == 5u || k == 6u || k == 11u) y = y + 1u;
          switch (k >> 2) { case 0: y = y ^ 1u; break; case 2: y = ~y; break; case 3: y = y + k; }
          out.write(y);
        }""",
    # The compare that ends the loop comes in every direction and spelling.
    "trip_counts": """
        for (unsigned i = n; i > 0; i--) {
        #pragma HLS PIPELINE II=1
          out.write(in.read() + i);
        }
        for (int i = 3; i >= 0; i--) {
        #pragma HLS PIPELINE II=1
          out.write(ap_uint<64>(i));
        }
        for (unsigned i = 0; !(i >= n); i += 2) {
        #pragma HLS PIPELINE II=1
          out.write(ap_uint<64>(i));
        }
        unsigned i = 7;
        while (i != 1u) {
        #pragma HLS PIPELINE II=1
          out.write(ap_uint<64>(i)); i = i >> 1;
        }
        do {
        #pragma HLS PIPELINE II=1
          out.write(ap_uint<64>(i)); i++;
        } while (i < (unsigned)(b & 7));""",
    # Unrolling leaves an array with constant indices, which decides the count of the next loop to unroll.
    "arrays_after_unrolling": """
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); ap_int<12> lane[8];
          for (int k = 0; k < 8; k++) {
        #pragma HLS UNROLL
            lane[k] = ap_int<8>(x.range(8 * k + 7, 8 * k));
          }
          for (int w = 4; w > 0; w >>= 1) {
        #pragma HLS UNROLL
            for (int k = 0; k < 4; k++) {
        #pragma HLS UNROLL
              if (k < w) lane[k] = k & 1 ? lane[2 * k] - lane[2 * k + 1] : lane[2 * k] + lane[2 * k + 1];
            }
          }
          out.write(ap_uint<64>(lane[0]));
        }""",
    # Tests of single bits of wide words become masks with compares: they should cost a wire.
    "bits_of_wide_words": """
        ap_uint<200> wide = 0;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read();
          wide.range(199, 136) = x; ap_uint<64> y = wide.range(130, 67); bool top = wide[199];
          if (wide[136]) y = y + 1u;
          if (!top && wide[150]) y = y ^ 0xf0u;
          wide = wide >> 13; wide.range(63, 63) = top;
          out.write(y);
        }""",
    # A load that follows a store of the same turn sees what was stored, whichever branch stored it.
    "store_then_load": """
        ap_uint<24> m[16];
        for (unsigned i = 0; i < 16; i++) {
        #pragma HLS PIPELINE II=1
          m[i] = i;
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); unsigned p = ap_uint<4>(x.range(3, 0)).to_uint();
          unsigned q = ap_uint<4>(x.range(7, 4)).to_uint();
          if (x[9]) m[p] = x.range(40, 17); else if (x[10]) m[q] = i;
          const ap_uint<24> y = m[q]; m[p] = y + 1u;
          out.write(ap_uint<64>(m[q]) + (ap_uint<64>(y) << 30));
        }""",
    # The next turn reads what this one wrote, in a memory large enough to be block RAM.
    "store_then_load_next_turn": """
        ap_uint<32> m[256];
        for (unsigned i = 0; i < 256; i++) {
        #pragma HLS PIPELINE II=1
          m[i] = i * 3u;
        }
        ap_uint<8> p = 0;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const ap_uint<32> y = m[p.to_uint()];
          m[p.to_uint()] = y + 1u; if (x[0]) p = p + ap_uint<1>(x.range(1, 1));
          out.write(ap_uint<64>(y) + x);
        }""",
    # Block RAM: read a clock after its address, written in another loop.
    "block_ram": """
        ap_uint<61> m[256];
        for (unsigned i = 0; i < 256; i++) {
        #pragma HLS PIPELINE II=1
          m[i] = i * 12345u;
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); out.write(ap_uint<64>(m[ap_uint<8>(x.range(8, 1)).to_uint()]) ^ x);
        }""",
    # Block RAM that is read and written in each turn, often at the place of the turn before.
    "histogram": """
        ap_uint<40> m[512];
        for (unsigned i = 0; i < 512; i++) {
        #pragma HLS PIPELINE II=1
          m[i] = i;
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const unsigned p = x[7] ? ap_uint<9>(x.range(8, 0)).to_uint() : 3u;
          const ap_uint<40> y = m[p];
          if (x[5]) m[x[6] ? p : p ^ 1u] = y + ap_uint<20>(x.range(30, 11));
          out.write(ap_uint<64>(y));
        }""",
    # The address of a block RAM is what it gave before: it has to be read at once.
    "pointer_chase": """
        ap_uint<64> m[256];
        for (unsigned i = 0; i < 256; i++) {
        #pragma HLS PIPELINE II=1
          m[i] = i * 7u + 1u;
        }
        ap_uint<8> p = 0;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); p = m[p.to_uint()]; out.write(ap_uint<64>(p) + x);
        }""",
    # Two indices: whole banks by a constant, or one memory by both.
    "two_dimensions": """
        ap_uint<16> bank[4][8], plane[4][8];
        for (unsigned i = 0; i < 8; i++) {
        #pragma HLS PIPELINE II=1
          for (int k = 0; k < 4; k++) {
        #pragma HLS UNROLL
            bank[k][i] = i * 5u + k;
          }
        }
        for (unsigned i = 0; i < 32; i++) {
        #pragma HLS PIPELINE II=1
          plane[i >> 3][i & 7u] = i * 3u;
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); unsigned p = ap_uint<3>(x.range(2, 0)).to_uint();
          unsigned q = ap_uint<2>(x.range(4, 3)).to_uint(); ap_uint<64> y = plane[q][p];
          for (int k = 0; k < 4; k++) {
        #pragma HLS UNROLL
            y = y * 3u + bank[k][p];
          }
          out.write(y);
        }""",
    # The element before a bank's first by a varying index is not in the bank before it.
    "banks_with_offsets": """
        ap_uint<16> bank[3][6];
        for (unsigned i = 0; i < 6; i++) {
        #pragma HLS PIPELINE II=1
          for (int k = 0; k < 3; k++) {
        #pragma HLS UNROLL
            bank[k][i] = i * 9u + k;
          }
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const unsigned p = ap_uint<2>(x.range(1, 0)).to_uint() + 1u;
          ap_uint<64> y = 0;
          for (int k = 0; k < 3; k++) {
        #pragma HLS UNROLL
            y = y * 5u + bank[k][p - 1] + bank[k][p + 1];
          }
          out.write(y);
        }""",
    # Elements wider than a word, whose bytes clang pads.
    "wide_elements": """
        ap_uint<200> m[20]; ap_int<65> s[9];
        for (unsigned i = 0; i < 20; i++) {
        #pragma HLS PIPELINE II=1
          ap_uint<200> row = 0; row.range(199, 140) = ap_uint<64>(i * 77u); row.range(40, 3) = ap_uint<32>(i);
          m[i] = row; if (i < 9u) s[i] = ap_int<65>(a) * ap_int<9>(i);
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const unsigned p = ap_uint<4>(x.range(3, 0)).to_uint();
          const ap_uint<200> row = m[p + 3u]; const ap_int<65> z = s[p & 7u];
          out.write(ap_uint<64>(row.range(199, 140)) + ap_uint<64>(row.range(40, 3)) + ap_uint<64>(z) + x);
        }""",
    # A loop without any stream: it only computes.
    "a_loop_that_only_counts": """
        ap_uint<20> lfsr = 1;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          lfsr = (lfsr << 1) | ap_uint<1>(lfsr[19] != lfsr[16]);
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(in.read() + lfsr);
        }""",
    # A condition on constants that decides whether a loop is there at all.
    "a_loop_that_never_turns": """
        for (unsigned i = 3; i < 2; i++) {
        #pragma HLS PIPELINE II=1
          out.write(ap_uint<64>(i));
        }
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(~in.read());
        }""",
    # A loop that is left in the middle: what comes after the break belongs to the turns that go on.
    "break_in_the_middle": """
        ap_uint<64> x = 0; unsigned k = 0, last = 0;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          last = i;
          if (i == 40u) break;
          x = in.read(); out.write(x); k = k + 2u;
        }
        out.write(x + k + last);
        for (unsigned i = k >> 1; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(in.read());
        }""",
    # The end is in the data: LLVM joins the branches at the end of the loop and drops its mark.
    "until_a_value_comes": """
        unsigned left = n;
        if (n != 0u) {
          while (true) {
        #pragma HLS PIPELINE II=1
            const ap_uint<64> x = in.read(); out.write(x); left--;
            if (x == ap_uint<64>(0) || left == 0u) break;
          }
        }
        while (left != 0u) {
        #pragma HLS PIPELINE II=1
          out.write(~in.read()); left--;
        }""",
    # Rotations by a variable, saturating sums.
    "rotations": """
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const unsigned u = ap_uint<32>(x.range(31, 0)).to_uint(), k = u & 31u;
          const unsigned v = ap_uint<32>(x.range(63, 32)).to_uint(); const unsigned sum = u + v;
          const unsigned left = v << k | v >> ((32u - k) & 31u), right = v >> k | v << ((32u - k) & 31u);
          out.write(ap_uint<64>(left) ^ (ap_uint<64>(right) << 32) ^ ap_uint<64>(sum < u ? ~0u : sum));
        }""",
    # A loop that is left to two places: which one is known in its last turn.
    "return_from_a_loop": """
        ap_uint<64> x = 0;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          x = in.read();
          if (i == 50u) { out.write(x + 1u); goto odd; }
          out.write(x);
        }
        out.write(x ^ 0xfffu);
        return;
        odd:
        for (unsigned i = 51; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(in.read() + x);
        }""",
    # A loop that runs once is no loop any more for LLVM.
    "accesses_outside_loops": """
        out.write(ap_uint<64>(a));
        for (unsigned i = 0; i < 1; i++) {
        #pragma HLS PIPELINE II=1
          out.write(ap_uint<64>(b));
        }
        if (n != 0u) { const ap_uint<64> x = in.read(); out.write(x); if (x[0]) out.write(x + 1u); }
        for (unsigned i = 1; i < n; i++) {
        #pragma HLS PIPELINE II=1
          out.write(in.read());
        }
        out.write(ap_uint<64>(n));""",
    # A condition that is never true: the write is gone, the port stays.
    "never_true": """
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const ap_uint<8> y = x; if (y > ap_uint<9>(255)) out.write(x);
        }""",
    # Signed and unsigned, odd widths, shifts past the width, negative amounts.
    "arithmetic": """
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const ap_int<7> p = x.range(6, 0); const ap_uint<9> q = x.range(20, 12);
          const ap_int<33> r = x.range(63, 31); ap_int<48> s = p * q; s = s + r * p; s = s - (q << 3) + (r >> 30);
          const ap_int<34> t = -r; const ap_int<18> u = p < ap_int<7>(-60) ? ap_int<18>(p - q) : ap_int<18>(q - p);
          const ap_uint<64> y = ap_uint<64>(s) ^ (ap_uint<64>(t) << 20) ^ ap_uint<64>(u);
          out.write(y ^ ap_uint<64>(~q & p) ^ ap_uint<64>(r | q));
        }""",
    # Products wider than one multiplier are taken apart.
    "wide_products": """
        const unsigned scale = (unsigned)a * (unsigned)b;
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const ap_int<40> p = x.range(39, 0); const ap_int<40> q = x.range(63, 24);
          const ap_int<80> y = p * q; out.write(ap_uint<64>(y) + ap_uint<64>(y >> 30) + scale);
        }""",
    # Built-in integers: min, max, abs, saturation, rotation and population count become LLVM intrinsics.
    "intrinsics": """
        for (unsigned i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
          const ap_uint<64> x = in.read(); const unsigned u = ap_uint<32>(x.range(31, 0)).to_uint();
          const unsigned v = ap_uint<32>(x.range(63, 32)).to_uint(); const int s = (int)u, t = (int)v;
          unsigned y = (u < v ? u : v) ^ (unsigned)(s > t ? s : t) ^ (u > v ? u - v : 0u);
          y = y + ((u << 7) | (u >> 25)) + (s < 0 ? 0u - u : u);
          y = y ^ (v >> 24 | (v >> 8 & 0xff00u) | (v << 8 & 0xff0000u) | v << 24);
          y = y + ((u & (u - 1u)) == 0u ? 1u : 0u);
          out.write(ap_uint<64>(y));
        }""",
}

# Whole kernels of several processes.
_ROUTES = f"""
static void route_split(hls::stream<{WORD} > &in, hls::stream<{WORD} > &even, hls::stream<{WORD} > &odd, unsigned n) {{
  for (unsigned i = 0; i < n; i++) {{
#pragma HLS PIPELINE II=1
    const {WORD} x = in.read();
    if (i & 1u) odd.write(x + 1u); else even.write(x);  // LLVM: one store to a pointer that it selects
  }}
}}
static void route_join(hls::stream<{WORD} > &even, hls::stream<{WORD} > &odd, hls::stream<{WORD} > &out, unsigned n) {{
  for (unsigned i = 0; i < n; i++) {{
#pragma HLS PIPELINE II=1
    {WORD} x;
    if (i & 1u) x = odd.read(); else x = even.read();
    out.write(x);
  }}
}}
extern "C" void routes(hls::stream<{WORD} > &in, hls::stream<{WORD} > &out, unsigned n, int a, int b) {{
#pragma HLS DATAFLOW
  hls::stream<{WORD} > even("even"), odd("odd");
  DATAFLOW_REGION;
  PROCESS(route_split, in, even, odd, n);
  PROCESS(route_join, even, odd, out, n);
  (void)a, (void)b;
}}
"""

# Bursts of 1 .. 150 elements into a FIFO whose reader rests: it fills, and its pointers wrap.
_FULL = f"""
static void full_write(hls::stream<{WORD} > &in, hls::stream<ap_uint<3> > &small, unsigned n) {{
  for (unsigned i = 0; i < n; i++) {{
#pragma HLS PIPELINE II=1
    small.write(in.read());
  }}
}}
static void full_read(hls::stream<ap_uint<3> > &small, hls::stream<{WORD} > &out, unsigned n) {{
  unsigned left = n; ap_uint<6> wait = 63;
  while (left != 0u) {{
#pragma HLS PIPELINE II=1
    if (wait[5] || wait[0]) {{ out.write({WORD}(small.read()) + left); left--; }}
    wait = wait + 1u;
  }}
}}
extern "C" void full(hls::stream<{WORD} > &in, hls::stream<{WORD} > &out, unsigned n, int a, int b) {{
#pragma HLS DATAFLOW
  hls::stream<ap_uint<3> > small("small");
  DATAFLOW_REGION;
  PROCESS(full_write, in, small, n);
  PROCESS(full_read, small, out, n);
  (void)a, (void)b;
}}
"""


# Names that SystemVerilog reserves, and names that the flow uses itself.
_NAMES = f"""
static void control(hls::stream<{WORD} > &reg, hls::stream<{WORD} > &phase, unsigned start, int done) {{
  ap_uint<32> run_0 = 0, IDLE = 1, output = done;
  for (unsigned always = 0; always < start; always++) {{
#pragma HLS PIPELINE II=1
    const {WORD} fire_0 = reg.read(); run_0 = run_0 + IDLE; IDLE = IDLE ^ fire_0; output = output + run_0;
    phase.write(fire_0 + run_0 + output);
  }}
}}
static void dataflow(hls::stream<{WORD} > &wire, hls::stream<{WORD} > &logic, unsigned n, int) {{
  for (unsigned clock = 0; clock < n; clock++) {{
#pragma HLS PIPELINE II=1
    logic.write(wire.read() + clock);
  }}
}}
extern "C" void names(hls::stream<{WORD} > &in, hls::stream<{WORD} > &out, unsigned n, int a, int b) {{
#pragma HLS DATAFLOW
  hls::stream<{WORD} > table("table"), again("again");
  DATAFLOW_REGION;
  PROCESS(control, in, table, n, a);
  PROCESS(dataflow, table, again, n, b);
  PROCESS(control, again, out, n, 7);
}}
"""


# One name in the source, two processes.
_TEMPLATES = f"""
template <int STEP>
void add(hls::stream<{WORD} > &from, hls::stream<{WORD} > &to, unsigned n) {{
  for (unsigned i = 0; i < n; i++) {{
#pragma HLS PIPELINE II=1
    to.write(from.read() + STEP);
  }}
}}
extern "C" void templates(hls::stream<{WORD} > &in, hls::stream<{WORD} > &out, unsigned n, int a, int b) {{
#pragma HLS DATAFLOW
  hls::stream<{WORD} > first("first"), second("second");
  DATAFLOW_REGION;
  PROCESS(add<3>, in, first, n);
  PROCESS(add<-70>, first, second, n);
  PROCESS(add<3>, second, out, n);
  (void)a, (void)b;
}}
"""


def _single(name: str, body: str) -> Program:
    head = f"hls::stream<{WORD} > &in, hls::stream<{WORD} > &out, unsigned n, int a, int b"
    lines = [f"static void {name}_process({head}) {{ (void)a, (void)b;", body, "}"]
    lines += [f'extern "C" void {name}({head}) {{', "#pragma HLS DATAFLOW", "  DATAFLOW_REGION;"]
    lines += [f"  PROCESS({name}_process, in, out, n, a, b);", "}", ""]
    return Program(name, "\n".join(lines), 0)


def test_each_construct_means_the_same_natively_and_in_rtl(tmp_path: Path) -> None:
    programs = [_single(name, body) for name, body in _BODIES.items()]
    programs += [Program("routes", _ROUTES, 0), Program("full", _FULL, 0), Program("names", _NAMES, 0)]
    programs.append(Program("templates", _TEMPLATES, 0))
    print(verify(tmp_path, source(programs), programs, _LAUNCHES))
