// Scores → tuples: those that reach min_score, close together, 16 to a beat; and the trailer of each block.
//
// A block's last beat is padded, beats without any tuple are left to fill_slots: tokens come in at up to one in each
// cycle, and nothing here ever takes longer than that.
#pragma once

#include "../plan.h"
#include "../types.h"

static const unsigned kPerBeat = QK_TUPLES_PER_BEAT;
static_assert(QK_TUPLES_PER_BEAT == 16, "positions in a beat are 4 bits");

void compact(hls::stream<score_t> &scores, hls::stream<beat_t> &tuples, hls::stream<beat_t> &trailers, int n_tokens,
             int first_token, int shape, int format, int min_score, int tag) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const bool any = plan.tokens != 0u;
  const unsigned steps = any ? plan.tokens : 1u;  // no tokens: one step, for the trailer
  ap_uint<32> pending[kPerBeat];
#pragma HLS ARRAY_PARTITION variable=pending complete
clear_pending:
  for (unsigned j = 0; j < kPerBeat; j++) {
#pragma HLS UNROLL
    pending[j] = QK_PADDING;
  }
  ap_uint<11> emitted = 0;
  ap_int<16> maximum = QK_NO_SCORE;
compact:
  for (unsigned i = 0; i < steps; i++) {
#pragma HLS PIPELINE II=1
    const ap_uint<10> offset = i;
    const bool block_ends = offset == QK_BLOCK_TOKENS - 1u || i + 1u == steps;
    ap_int<16> score = QK_NO_SCORE;
    if (any) score = ap_int<16>(scores.read());
    const bool keep = any && score >= min_score;
    if (score > maximum) maximum = score;

    const ap_uint<4> position = emitted;
    if (keep) emitted = emitted + 1u;
    ap_uint<32> tuple = 0;
    tuple.range(15, 0) = offset;
    tuple.range(31, 16) = score;
    beat_t beat;
  place:
    for (unsigned j = 0; j < kPerBeat; j++) {
#pragma HLS UNROLL
      if (keep && position == j) pending[j] = tuple;
      beat.range(32 * j + 31, 32 * j) = pending[j];
    }
    const bool full = keep && position == kPerBeat - 1u;
    const bool rest = block_ends && ap_uint<4>(emitted) != 0u;
    if (full || rest) tuples.write(beat);
  clear_written:
    for (unsigned j = 0; j < kPerBeat; j++) {
#pragma HLS UNROLL
      if (full || block_ends) pending[j] = QK_PADDING;
    }

    beat_t trailer = 0;
    trailer.range(8 * QK_TRAILER_MAGIC + 31, 8 * QK_TRAILER_MAGIC) = (unsigned)QK_MAGIC;
    trailer.range(8 * QK_TRAILER_TAG + 31, 8 * QK_TRAILER_TAG) = (unsigned)tag;
    trailer.range(8 * QK_TRAILER_FIRST_TOKEN + 31, 8 * QK_TRAILER_FIRST_TOKEN) =
        (unsigned)first_token + (i & ~(QK_BLOCK_TOKENS - 1u));
    trailer.range(8 * QK_TRAILER_SCANNED + 31, 8 * QK_TRAILER_SCANNED) =
        any ? (i & (QK_BLOCK_TOKENS - 1u)) + 1u : 0u;
    trailer.range(8 * QK_TRAILER_EMITTED + 31, 8 * QK_TRAILER_EMITTED) = emitted;
    trailer.range(8 * QK_TRAILER_MAXIMUM + 31, 8 * QK_TRAILER_MAXIMUM) = ap_int<32>(maximum);
    trailer.range(8 * QK_TRAILER_STATUS + 31, 8 * QK_TRAILER_STATUS) = plan.status;
    trailer.range(8 * QK_TRAILER_INDEX + 31, 8 * QK_TRAILER_INDEX) = i >> 10;
    trailer.range(8 * QK_TRAILER_COUNT + 31, 8 * QK_TRAILER_COUNT) = plan.blocks;
    trailer.range(8 * QK_TRAILER_NOT_TAG + 31, 8 * QK_TRAILER_NOT_TAG) = ~(unsigned)tag;
    if (block_ends) {
      trailers.write(trailer);
      emitted = 0;
      maximum = QK_NO_SCORE;
    }
  }
}
