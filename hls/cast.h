// FP16 to INT8 or INT4: round half to even of k·2^e, saturated to ±127 or ±7; NaN gives 0, an infinity saturates.
//
// On the bits alone: half-precision operators would be vendor IP that no open simulator has.
#pragma once

#include <ap_int.h>

static inline ap_int<8> cast_fp16(const ap_uint<16> &half, const ap_int<6> &e, bool to_int4) {
#pragma HLS INLINE
  const ap_uint<5> exponent = half.range(14, 10);
  const ap_uint<10> fraction = half.range(9, 0);
  const bool subnormal = exponent == 0u, special = exponent == 31u;
  const ap_uint<11> significand = ap_uint<11>(fraction) | (subnormal ? ap_uint<11>(0) : ap_uint<11>(1024));

  // The value is significand · 2^(left − 12). From left = 9 on even the smallest normal significand exceeds 127; below
  // 0 even the largest one is under a half, as it is at 0. A subnormal never comes near saturation: its left is <= 3.
  const ap_int<7> left = (subnormal ? ap_uint<5>(1) : exponent) + e - ap_int<5>(13);
  const bool saturates = left > 8 || special;
  const ap_uint<4> shift = left < 0 ? ap_uint<4>(0) : ap_uint<4>(left);
  const ap_uint<19> fixed = ap_uint<19>(significand) << shift;
  const ap_uint<12> rest = fixed.range(11, 0);
  ap_uint<8> magnitude = fixed.range(18, 12);
  const bool up = rest > 2048u || (rest == 2048u && magnitude[0]);
  if (up) magnitude = magnitude + 1u;
  const ap_uint<8> limit = to_int4 ? ap_uint<8>(7) : ap_uint<8>(127);
  if (saturates || magnitude > limit) magnitude = limit;
  if (special && fraction != 0u) magnitude = 0;
  const ap_int<9> positive = magnitude;
  return half[15] ? ap_int<8>(-positive) : ap_int<8>(positive);
}
