// Stream → memory: the slots.
//
// Vitis starts a burst only when its data is there. Over one long loop the last beats of a slot, its trailer among
// them, would wait for the next slot to fill the burst; a loop for each slot ends the burst with the trailer. That loop
// is a function of its own, as Vitis flattens perfect nests and widens bursts to the outermost loop it can. The open
// flow's writer needs no such care: it sends what it has when nothing more comes.
#pragma once

#include "../plan.h"
#include "../types.h"

#ifdef __VITIS_HLS__
static void write_one(hls::stream<beat_t> &slot_beats, beat_t *slot) {
#pragma HLS INLINE off
write_slot:
  for (unsigned j = 0; j < QK_SLOT_BEATS; j++) {
#pragma HLS PIPELINE II=1
    slot[j] = slot_beats.read();
  }
}
#endif

void write_blocks(hls::stream<beat_t> &slot_beats, beat_t *blocks, int n_tokens, int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
#ifdef __VITIS_HLS__
slots:
  for (unsigned slot = 0; slot < plan.blocks; slot++) {
#pragma HLS LOOP_FLATTEN off
    write_one(slot_beats, blocks + slot * QK_SLOT_BEATS);
  }
#else
  const unsigned beats = (ap_uint<11>(plan.blocks) * ap_uint<7>(QK_SLOT_BEATS)).to_uint();
write_blocks:
  for (unsigned i = 0; i < beats; i++) {
#pragma HLS PIPELINE II=1
    blocks[i] = slot_beats.read();
  }
#endif
}
