// One exponent for each token and group: a tile's first token takes them from memory, the other 63 repeat them.
//
// What repeats is the exponent of `groups` iterations ago. Where that is recent, it comes from a shift register: a read
// of a memory right behind the write to the same place would force a longer initiation interval, or a bypass that
// tools differ about. The memory serves only rows of more groups than the shift register holds, and DEPENDENCE says so.
#pragma once

#include "../plan.h"
#include "../types.h"

static const int kRecent = 8;  // more iterations than a tool puts between a write and the read that may overtake it

void expand_exponents(hls::stream<beat_t> &exponent_beats, hls::stream<exponent_t> &exponents, int n_tokens, int shape,
                      int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const unsigned total = times_tokens(plan, plan.groups);
  const ap_uint<8> last_group = plan.groups - 1u;
  exponent_t memory[256];
#pragma HLS DEPENDENCE variable=memory inter false
  ap_uint<8 * kRecent> recent = 0;  // the lowest byte is that of the last iteration
  beat_t beat = 0;
  ap_uint<8> group = 0;
  ap_uint<6> token = 0;  // in the tile
expand_exponents:
  for (unsigned i = 0; i < total; i++) {
#pragma HLS PIPELINE II=1
    const bool fresh = token == 0u;
    if (fresh && ap_uint<6>(group) == 0u) beat = exponent_beats.read();
    exponent_t exponent = memory[group.to_uint()];
  repeat_recent:
    for (int r = 0; r < kRecent; r++) {
#pragma HLS UNROLL
      if (last_group == (unsigned)r) exponent = recent.range(8 * r + 7, 8 * r);
    }
    if (fresh) {
      exponent = beat.range(7, 0);
      memory[group.to_uint()] = exponent;
      beat = beat >> 8;
    }
    recent = recent << 8;
    recent.range(7, 0) = exponent;
    exponents.write(exponent);
    const bool last = group == last_group;
    if (last) token = token + 1u;
    group = last ? ap_uint<8>(0) : ap_uint<8>(group + 1u);
  }
}
