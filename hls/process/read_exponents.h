// Memory → stream: one row of exponents for each tile of 64 tokens, padded to whole beats.
#pragma once

#include "../plan.h"
#include "../types.h"

void read_exponents(const beat_t *exps, hls::stream<beat_t> &exponent_beats, int n_tokens, int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  static_assert(QK_TILE_TOKENS == 1 << 6 && QK_EXPONENTS_PER_BEAT == 1 << 6, "tiles and beats are counted by shifting");
  const unsigned tiles = (plan.tokens + 63u) >> 6;
  const unsigned beats_per_tile = (plan.groups + 63u) >> 6;
  const unsigned beats = (ap_uint<15>(tiles) * ap_uint<4>(beats_per_tile)).to_uint();
read_exponents:
  for (unsigned i = 0; i < beats; i++) {
#pragma HLS PIPELINE II=1
    exponent_beats.write(exps[i]);
  }
}
