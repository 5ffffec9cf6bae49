// Tuples and trailers → whole slots: 64 beats, what is missing padded with ones, then the trailer.
//
// The trailer is read before the slot's tuples, because it says how many beats of them there are. So whether to read
// the next beat never depends on what was read in the cycle before; the price is a first step that writes nothing.
// The tuples of a whole block wait in their stream meanwhile: its depth must be at least 64.
#pragma once

#include "../plan.h"
#include "../types.h"

static const unsigned kSlotSteps = QK_SLOT_BEATS + 1u;

void fill_slots(hls::stream<beat_t> &tuples, hls::stream<beat_t> &trailers, hls::stream<beat_t> &slot_beats,
                int n_tokens, int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const unsigned steps = (ap_uint<11>(plan.blocks) * ap_uint<7>(kSlotSteps)).to_uint();
  ap_uint<7> step = 0;
  ap_uint<7> left = 0;  // tuple beats of this slot still to come
  beat_t trailer = 0;
fill_slots:
  for (unsigned i = 0; i < steps; i++) {
#pragma HLS PIPELINE II=1
    const bool first = step == 0u, last = step == kSlotSteps - 1u;
    beat_t beat = ~beat_t(0);
    if (first) {
      trailer = trailers.read();
      const ap_uint<11> emitted = trailer.range(8 * QK_TRAILER_EMITTED + 10, 8 * QK_TRAILER_EMITTED);
      left = (emitted + ap_uint<4>(15)) >> 4;
    } else if (left != 0u) {
      beat = tuples.read();
      left = left - 1u;
    }
    if (last) beat = trailer;
    if (!first) slot_beats.write(beat);
    step = last ? ap_uint<7>(0) : ap_uint<7>(step + 1u);
  }
}
