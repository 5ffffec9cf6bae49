// Sums → scores: each query's scale, shift and normaliser, then max or sum over the queries of all heads of a token.
//
// Max and sum are kept apart as two short recurrences instead of one wide one: a maximum of 16 bits, because the clamp
// to int16 may come before it (it is monotonic), and an addition of 36 bits without a comparison. Either fits one cycle.
#pragma once

#include "../plan.h"
#include "../types.h"

typedef ap_int<25> logit_t;  // t − o: the difference of two int24
typedef ap_int<28> pass_sum_t;
typedef ap_int<36> row_sum_t;  // 256 groups and passes × 8 slots

// u of one slot: saturate24((sum · m) >> clamp(r + e, 0, 40)) − o.
static inline logit_t logit_of(const ap_int<24> &sum, const ap_int<6> &exponent, const ap_uint<64> &parameter) {
#pragma HLS INLINE
  const ap_uint<16> m = parameter.range(8 * QK_PARAM_M + 15, 8 * QK_PARAM_M);
  const ap_uint<6> r = parameter.range(8 * QK_PARAM_R + 5, 8 * QK_PARAM_R);
  const ap_int<24> o = parameter.range(8 * QK_PARAM_O + 23, 8 * QK_PARAM_O);
  const ap_int<40> product = sum * m;
  const ap_int<8> shift = r + exponent;
  const ap_uint<6> clamped = shift < 0              ? ap_uint<6>(0)
                             : shift > QK_SHIFT_MAX ? ap_uint<6>(QK_SHIFT_MAX)
                                                    : ap_uint<6>(shift);
  const ap_int<40> scaled = product >> clamped;
  const ap_int<24> t = scaled > 8388607    ? ap_int<24>(8388607)
                       : scaled < -8388608 ? ap_int<24>(-8388608)
                                           : ap_int<24>(scaled);
  return t - o;
}

template <int W> static inline ap_int<16> clamp_to_int16(const ap_int<W> &value) {
#pragma HLS INLINE
  return value > 32767 ? ap_int<16>(32767) : value < -32768 ? ap_int<16>(-32768) : ap_int<16>(value);
}

static inline logit_t larger(const logit_t &a, const logit_t &b) {
#pragma HLS INLINE
  return a > b ? a : b;
}

void normalise(hls::stream<beat_t> &parameters, hls::stream<sums_t> &sums, hls::stream<score_t> &scores, int n_tokens,
               int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const unsigned per_row = plan.groups << (plan.passes - 1u);  // groups × passes
  beat_t memory[QK_MAX_ROW_PASSES];
  const unsigned loads = plan.tokens == 0u ? 0u : per_row;
load_parameters:
  for (unsigned i = 0; i < loads; i++) {
#pragma HLS PIPELINE II=1
    memory[i & (QK_MAX_ROW_PASSES - 1)] = parameters.read();
  }

  // Slots behind the banks in use hold no query, whatever their flags say.
  const unsigned slots = 1u << (plan.banks_log2 - plan.lane_log2);
  const unsigned total = times_tokens(plan, per_row);
  const ap_uint<8> last = per_row - 1u;
  ap_uint<8> address = 0;
  row_sum_t row_sum = 0;
  ap_int<16> row_max = 0;
normalise:
  for (unsigned i = 0; i < total; i++) {
#pragma HLS PIPELINE II=1
    const sums_t of_group = sums.read();
    const beat_t parameter = memory[address.to_uint()];
    const ap_int<6> exponent = of_group.range(kSumsExponent + 5, kSumsExponent);
    logit_t term[kSlots], candidate[kSlots];  // 0 and the least value where there is no query
#pragma HLS ARRAY_PARTITION variable=term complete
#pragma HLS ARRAY_PARTITION variable=candidate complete
  logits:
    for (int s = 0; s < kSlots; s++) {
#pragma HLS UNROLL
      const ap_uint<64> of_slot = parameter.range(64 * s + 63, 64 * s);
      const bool enabled = of_slot[8 * QK_PARAM_FLAGS + QK_FLAG_ENABLED_BIT] && (unsigned)s < slots;
      const logit_t u = logit_of(of_group.range(kSumBits * s + kSumBits - 1, kSumBits * s), exponent, of_slot);
      term[s] = enabled ? u : logit_t(0);
      candidate[s] = enabled ? u : logit_t(-(1 << 24));
    }
    const pass_sum_t pass_sum = ((term[0] + term[1]) + (term[2] + term[3])) + ((term[4] + term[5]) + (term[6] + term[7]));
    const ap_int<16> pass_max = clamp_to_int16(
        larger(larger(larger(candidate[0], candidate[1]), larger(candidate[2], candidate[3])),
               larger(larger(candidate[4], candidate[5]), larger(candidate[6], candidate[7]))));

    const bool row_starts = address == 0u, row_ends = address == last;
    row_sum = row_starts ? row_sum_t(pass_sum) : row_sum_t(row_sum + pass_sum);
    row_max = row_starts || pass_max > row_max ? pass_max : row_max;
    const ap_int<16> score = plan.sum ? clamp_to_int16(row_sum) : row_max;
    if (row_ends) scores.write(score_t(score));
    address = row_ends ? ap_uint<8>(0) : ap_uint<8>(address + 1u);
  }
}
