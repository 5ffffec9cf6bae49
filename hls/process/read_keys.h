// Memory → stream: the keys, every beat once and in order. This is the traffic that the kernel's speed is measured by.
#pragma once

#include "../plan.h"
#include "../types.h"

void read_keys(const beat_t *keys, hls::stream<beat_t> &key_beats, int n_tokens, int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const unsigned beats = times_tokens(plan, plan.row_beats);
read_keys:
  for (unsigned i = 0; i < beats; i++) {
#pragma HLS PIPELINE II=1
    key_beats.write(keys[i]);
  }
}
