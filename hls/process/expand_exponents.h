// One exponent for each token and group: a tile's first token brings them, the other 63 repeat them.
//
// A group's exponent is read as many iterations after it is written as a row has groups. A memory that is read right
// behind a write to the same place would need a longer initiation interval, or a bypass that tools differ about. So
// the first groups, the only ones that can come round that soon, are kept in registers, and the memory holds the rest.
#pragma once

#include "../plan.h"
#include "../types.h"

static const int kInRegisters = 8;  // groups: more iterations than a tool puts between a write and a read after it

void expand_exponents(hls::stream<beat_t> &exponent_beats, hls::stream<exponent_t> &exponents, int n_tokens, int shape,
                      int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const unsigned total = times_tokens(plan, plan.groups);
  const ap_uint<8> last_group = plan.groups - 1u;
  exponent_t memory[256];
  static_assert(kInRegisters + 1 == 9, "the distance of the DEPENDENCE pragma below");
// What is read from memory was written at least a row of kInRegisters + 1 groups before.
#pragma HLS DEPENDENCE variable=memory type=inter direction=RAW distance=9 dependent=true
  exponent_t registers[kInRegisters];
#pragma HLS ARRAY_PARTITION variable=registers complete
clear_registers:
  for (int g = 0; g < kInRegisters; g++) {
#pragma HLS UNROLL
    registers[g] = 0;
  }
  beat_t beat = 0;
  ap_uint<8> group = 0;
  ap_uint<6> token = 0;  // in the tile
expand_exponents:
  for (unsigned i = 0; i < total; i++) {
#pragma HLS PIPELINE II=1
    const bool fresh = token == 0u;
    if (fresh && ap_uint<6>(group) == 0u) beat = exponent_beats.read();
    const exponent_t brought = beat.range(7, 0);
    exponent_t exponent = memory[group.to_uint()];
  first_groups:
    for (int g = 0; g < kInRegisters; g++) {
#pragma HLS UNROLL
      if (group == (unsigned)g) exponent = registers[g];
      if (fresh && group == (unsigned)g) registers[g] = brought;
    }
    if (fresh) {
      exponent = brought;
      memory[group.to_uint()] = brought;
      beat = beat >> 8;
    }
    exponents.write(exponent);
    const bool last = group == last_group;
    if (last) token = token + 1u;
    group = last ? ap_uint<8>(0) : ap_uint<8>(group + 1u);
  }
}
