// What the scalars of a launch mean: how many of everything, or which of the scalars is illegal.
//
// Every process works this out for itself from the scalars, which are registers: cheaper than a channel to each of
// them. An illegal launch has no tokens, so that nothing is read and one slot is written.
#pragma once

#include <ap_int.h>

#include "qk_abi.h"

struct plan_t {
  unsigned tokens;      // 0 when the launch is illegal
  unsigned blocks;      // Score Block slots, at least 1
  unsigned group_beats; // beats per group
  unsigned groups;      // per row
  unsigned passes;      // over each key beat, 1 or 2
  unsigned row_beats;   // beats per token
  unsigned banks_log2;
  unsigned keys;        // QK_FP16_INT8 ...
  unsigned lane_log2;   // a slot is the sum of 2^lane_log2 banks
  bool sum;             // reduce by sum, not max
  unsigned status;
};

static inline unsigned field(unsigned scalar, int first_bit, int bits) {
#pragma HLS INLINE
  return (scalar >> first_bit) & ((1u << bits) - 1u);
}

static inline unsigned field_mask(int first_bit, int bits) {
#pragma HLS INLINE
  return ((1u << bits) - 1u) << first_bit;
}

static inline plan_t plan_of(int n_tokens, int shape_scalar, int format_scalar) {
#pragma HLS INLINE
  const unsigned n = n_tokens, shape = shape_scalar, format = format_scalar;
  const unsigned shape_mask = field_mask(QK_SHAPE_BEATS_BIT, QK_SHAPE_BEATS_BITS) | field_mask(QK_SHAPE_PAIR_BIT, 1) |
                              field_mask(QK_SHAPE_DUAL_BIT, 1) | field_mask(QK_SHAPE_BANKS_BIT, QK_SHAPE_BANKS_BITS) |
                              field_mask(QK_SHAPE_GROUPS_BIT, QK_SHAPE_GROUPS_BITS);
  const unsigned format_mask = field_mask(QK_FORMAT_KEYS_BIT, QK_FORMAT_KEYS_BITS) | field_mask(QK_FORMAT_SUM_BIT, 1);
  plan_t p;
  p.group_beats = field(shape, QK_SHAPE_BEATS_BIT, QK_SHAPE_BEATS_BITS);
  p.groups = field(shape, QK_SHAPE_GROUPS_BIT, QK_SHAPE_GROUPS_BITS);
  p.banks_log2 = field(shape, QK_SHAPE_BANKS_BIT, QK_SHAPE_BANKS_BITS);
  p.keys = field(format, QK_FORMAT_KEYS_BIT, QK_FORMAT_KEYS_BITS);
  p.sum = field(format, QK_FORMAT_SUM_BIT, 1) != 0;
  const bool pair = field(shape, QK_SHAPE_PAIR_BIT, 1) != 0, dual = field(shape, QK_SHAPE_DUAL_BIT, 1) != 0;
  const bool stored = p.keys >= QK_INT8;
  const unsigned beat_banks_log2 = p.keys == QK_INT4 ? 2u : p.keys == QK_INT8 ? 1u : 0u;  // banks for one query
  p.passes = dual ? 2u : 1u;
  p.row_beats = (ap_uint<4>(p.group_beats) * ap_uint<9>(p.groups)).to_uint();
  p.lane_log2 = pair ? beat_banks_log2 - 1u : beat_banks_log2;

  const bool tokens_legal = n <= QK_MAX_TOKENS;  // a negative number is a large unsigned one
  const bool beats_legal = p.group_beats >= 1u && p.group_beats <= 8u && p.groups >= 1u &&
                           (p.row_beats << (dual ? 1 : 0)) <= QK_MAX_ROW_PASSES;
  const bool banks_legal = p.banks_log2 >= 1u && p.banks_log2 >= beat_banks_log2 &&
                           p.banks_log2 <= (p.keys == QK_INT4 ? 4u : 3u);
  const bool sharing_legal = (stored || !(pair || dual)) && (!pair || p.group_beats == 1u);
  const bool shape_legal = (shape & ~shape_mask) == 0u && beats_legal && banks_legal && sharing_legal;
  const bool format_legal = (format & ~format_mask) == 0u;
  p.status = (tokens_legal ? 0u : (unsigned)QK_STATUS_TOKENS) | (shape_legal ? 0u : (unsigned)QK_STATUS_SHAPE) |
             (format_legal ? 0u : (unsigned)QK_STATUS_FORMAT);
  p.tokens = p.status == 0u ? n : 0u;
  p.blocks = p.tokens == 0u ? 1u : (p.tokens + QK_BLOCK_TOKENS - 1u) >> 10;
  static_assert(QK_BLOCK_TOKENS == 1 << 10, "blocks are counted by shifting");
  return p;
}

// Products in the width they need, so that each costs one DSP at most.
static inline unsigned times_tokens(const plan_t &p, unsigned per_token) {
#pragma HLS INLINE
  return (ap_uint<21>(p.tokens) * ap_uint<9>(per_token)).to_uint();
}
