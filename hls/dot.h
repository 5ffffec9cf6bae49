// One bank: 32 products of a query with a key, and their sum.
#pragma once

#include "types.h"

// A product of INT8 with INT4 by shifted additions: LUTs, where the multipliers of the upper banks would be DSPs that
// the card has no room for. key = −8·b3 + 4·b2 + 2·b1 + b0.
static inline ap_int<16> times_int4(const ap_int<8> &query, const ap_int<4> &key) {
#pragma HLS INLINE
  const ap_int<9> zero = 0, once = query, twice = ap_int<9>(query) << 1;
  const ap_int<10> low = (key[0] ? once : zero) + (key[1] ? twice : zero);
  const ap_int<10> high = (key[2] ? once : zero) - (key[3] ? twice : zero);
  return low + (ap_int<12>(high) << 2);
}

// The adder tree, level by level: each is one bit wider than the one before, so the sum is exact.
static inline ap_int<21> sum_of_32(const ap_int<16> term[32]) {
#pragma HLS INLINE
  ap_int<17> sum2[16];
  ap_int<18> sum4[8];
  ap_int<19> sum8[4];
  ap_int<20> sum16[2];
#pragma HLS ARRAY_PARTITION variable=sum2 complete
#pragma HLS ARRAY_PARTITION variable=sum4 complete
#pragma HLS ARRAY_PARTITION variable=sum8 complete
#pragma HLS ARRAY_PARTITION variable=sum16 complete
sums_of_2:
  for (int i = 0; i < 16; i++) {
#pragma HLS UNROLL
    sum2[i] = term[i] + term[i + 16];
  }
sums_of_4:
  for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
    sum4[i] = sum2[i] + sum2[i + 8];
  }
sums_of_8:
  for (int i = 0; i < 4; i++) {
#pragma HLS UNROLL
    sum8[i] = sum4[i] + sum4[i + 4];
  }
sums_of_16:
  for (int i = 0; i < 2; i++) {
#pragma HLS UNROLL
    sum16[i] = sum8[i] + sum8[i + 2];
  }
  return sum16[0] + sum16[1];
}
