// Keys × queries: the casts, 512 products, and the sums of each query slot, for one key beat and pass in each cycle.
//
// 16 banks of 32 multipliers stand beside each other, bank p over key lanes 32·(p mod 4) … +31. How many banks make one
// query's beat depends on the format: FP16 1, INT8 2, INT4 4, half of it when two heads share a beat. So all formats
// use the same multipliers, and the levels of the last adder tree are the sums of each format.
#pragma once

#include "../cast.h"
#include "../dot.h"
#include "../plan.h"
#include "../types.h"

// The 128 INT8 lanes that the banks see. FP16 fills 32 of them and INT8 64, again and again.
static inline void unpack_keys(const beat_t &beat, const ap_int<6> &exponent, unsigned keys, ap_int<8> lane[kKeyLanes]) {
#pragma HLS INLINE
  if (keys < QK_INT8) {
  cast_lanes:
    for (int i = 0; i < 32; i++) {
#pragma HLS UNROLL
      const ap_int<8> cast = cast_fp16(beat.range(16 * i + 15, 16 * i), exponent, keys == QK_FP16_INT4);
      lane[i] = cast;
      lane[i + 32] = cast;
      lane[i + 64] = cast;
      lane[i + 96] = cast;
    }
  } else if (keys == QK_INT8) {
  int8_lanes:
    for (int i = 0; i < 64; i++) {
#pragma HLS UNROLL
      const ap_int<8> stored = beat.range(8 * i + 7, 8 * i);
      lane[i] = stored;
      lane[i + 64] = stored;
    }
  } else {
  int4_lanes:
    for (int i = 0; i < 128; i++) {
#pragma HLS UNROLL
      const ap_int<4> stored = beat.range(4 * i + 3, 4 * i);
      lane[i] = stored;
    }
  }
}

// The sum of one bank's products. The upper banks are in use for INT4 only, so 4 bits of a lane are all they need.
static inline ap_int<21> sum_of_bank(const ap_uint<kBankBits> &queries, const ap_int<8> lane[kKeyLanes], int p) {
#pragma HLS INLINE
  const int first = kLanes * (p & 3);
  ap_int<8> query[kLanes];
  ap_int<16> product[kLanes];
#pragma HLS ARRAY_PARTITION variable=query complete
#pragma HLS ARRAY_PARTITION variable=product complete
query_lanes:
  for (int l = 0; l < kLanes; l++) {
#pragma HLS UNROLL
    query[l] = queries.range(8 * l + 7, 8 * l);
  }
  if (p < kSharedBanks) {
  products:
    for (int l = 0; l < kLanes; l++) {
#pragma HLS UNROLL
      product[l] = query[l] * lane[first + l];
    }
  } else {
  int4_products:
    for (int l = 0; l < kLanes; l++) {
#pragma HLS UNROLL
      product[l] = times_int4(query[l], ap_int<4>(lane[first + l]));
    }
  }
  return sum_of_32(product);
}

void multiply(hls::stream<beat_t> &queries, hls::stream<beat_t> &key_beats, hls::stream<exponent_t> &exponents,
              hls::stream<sums_t> &sums, int n_tokens, int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  // Each address holds the queries of one group, beat and pass; half a beat of them stands in each bank.
  ap_uint<kBankBits> bank[kBanks][QK_MAX_ROW_PASSES];
#pragma HLS ARRAY_PARTITION variable=bank complete dim=1
  const unsigned load_log2 = plan.banks_log2 - 1u;
  const unsigned loads = plan.tokens == 0u ? 0u : (plan.row_beats << (plan.passes - 1u)) << load_log2;
load_queries:
  for (unsigned i = 0; i < loads; i++) {
#pragma HLS PIPELINE II=1
    const beat_t beat = queries.read();
    const unsigned address = i >> load_log2, two_banks = i & ((1u << load_log2) - 1u);
  load_banks:
    for (int p = 0; p < kBanks; p++) {
#pragma HLS UNROLL
      if (two_banks == (unsigned)(p >> 1))
        bank[p][address & (QK_MAX_ROW_PASSES - 1)] =
            (p & 1) ? beat.range(2 * kBankBits - 1, kBankBits) : beat.range(kBankBits - 1, 0);
    }
  }

  const unsigned total = times_tokens(plan, plan.row_beats) << (plan.passes - 1u);
  const bool dual = plan.passes == 2u;
  const unsigned banks = 1u << plan.banks_log2;
  const ap_uint<3> last_beat = plan.group_beats - 1u;
  const ap_uint<8> last_group = plan.groups - 1u;
  ap_uint<1> pass = 0;
  ap_uint<3> beat_of_group = 0;
  ap_uint<8> group = 0, address = 0;
  beat_t keys = 0;
  exponent_t exponent_bits = 0;
  // Sums so far, of the last iteration and of the one before it: with two passes, each continues its own.
  ap_int<kSumBits> newest[kSlots], older[kSlots];
#pragma HLS ARRAY_PARTITION variable=newest complete
#pragma HLS ARRAY_PARTITION variable=older complete
clear_sums:
  for (int s = 0; s < kSlots; s++) {
#pragma HLS UNROLL
    newest[s] = 0;
    older[s] = 0;
  }
multiply:
  for (unsigned i = 0; i < total; i++) {
#pragma HLS PIPELINE II=1
    const bool first_pass = pass == 0u, first_beat = beat_of_group == 0u;
    if (first_pass) keys = key_beats.read();
    if (first_pass && first_beat) exponent_bits = exponents.read();
    const ap_int<8> stored = exponent_bits;
    const ap_int<6> exponent = stored > QK_EXPONENT_MAX   ? ap_int<6>(QK_EXPONENT_MAX)
                               : stored < QK_EXPONENT_MIN ? ap_int<6>(QK_EXPONENT_MIN)
                                                          : ap_int<6>(stored);
    ap_int<8> lane[kKeyLanes];
#pragma HLS ARRAY_PARTITION variable=lane complete
    unpack_keys(keys, exponent, plan.keys, lane);

    ap_int<21> of_bank[kBanks];
#pragma HLS ARRAY_PARTITION variable=of_bank complete
  banks:
    for (int p = 0; p < kBanks; p++) {
#pragma HLS UNROLL
      of_bank[p] = 0;  // a bank without a query: C simulation does not work it out
      if ((unsigned)p < banks) of_bank[p] = sum_of_bank(bank[p][address.to_uint()], lane, p);
    }

    ap_int<22> of_two[8];
    ap_int<23> of_four[4];
#pragma HLS ARRAY_PARTITION variable=of_two complete
#pragma HLS ARRAY_PARTITION variable=of_four complete
  two_banks:
    for (int s = 0; s < 8; s++) {
#pragma HLS UNROLL
      of_two[s] = of_bank[2 * s] + of_bank[2 * s + 1];
    }
  four_banks:
    for (int s = 0; s < 4; s++) {
#pragma HLS UNROLL
      of_four[s] = of_two[2 * s] + of_two[2 * s + 1];
    }
    sums_t result;
  accumulate:
    for (int s = 0; s < kSlots; s++) {
#pragma HLS UNROLL
      const ap_int<kSumBits> of_beat = plan.lane_log2 == 0u   ? ap_int<kSumBits>(of_bank[s])
                                       : plan.lane_log2 == 1u ? ap_int<kSumBits>(of_two[s])
                                                              : ap_int<kSumBits>(of_four[s & 3]);
      const ap_int<kSumBits> so_far = dual ? older[s] : newest[s];
      const ap_int<kSumBits> sum = first_beat ? of_beat : ap_int<kSumBits>(so_far + of_beat);
      older[s] = newest[s];
      newest[s] = sum;
      result.range(kSumBits * s + kSumBits - 1, kSumBits * s) = sum;
    }
    result.range(kSumsExponent + 7, kSumsExponent) = ap_int<8>(exponent);

    const bool beats_end = beat_of_group == last_beat;
    if (beats_end) sums.write(result);
    const bool passes_end = !dual || !first_pass;
    const bool row_ends = passes_end && beats_end && group == last_group;
    pass = passes_end ? ap_uint<1>(0) : ap_uint<1>(1);
    if (passes_end) {
      beat_of_group = beats_end ? ap_uint<3>(0) : ap_uint<3>(beat_of_group + 1u);
      if (beats_end) group = row_ends ? ap_uint<8>(0) : ap_uint<8>(group + 1u);
    }
    address = row_ends ? ap_uint<8>(0) : ap_uint<8>(address + 1u);
  }
}
