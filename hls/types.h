// What travels between the processes. Streams carry unsigned bit vectors; their fields are named here.
#pragma once

#include <ap_int.h>
#include <hls_stream.h>

typedef ap_uint<512> beat_t;      // one AXI beat
typedef ap_uint<8> exponent_t;    // int8, of one token and group
typedef ap_uint<200> sums_t;      // of one group and pass: 8 slots × int24, then the exponent as int8
typedef ap_uint<16> score_t;      // int16, of one token

static const int kLanes = 32;         // products of one bank and cycle
static const int kBanks = 16;         // INT4: 4 queries × 128 lanes
static const int kSharedBanks = 8;    // the banks that FP16 and INT8 use as well
static const int kKeyLanes = 128;     // INT4 keys of one beat
static const int kSlots = 8;          // queries of one group and pass
static const int kSumBits = 24;
static const int kBankBits = 8 * kLanes;
static const int kSumsExponent = kSlots * kSumBits;  // first bit of the exponent in sums_t

static_assert(sizeof(beat_t) == 64, "a beat is 64 bytes in memory: the host's arrays are read as beats");
static_assert(kBanks * kLanes == 4 * kKeyLanes, "the banks hold four queries of an INT4 beat");
static_assert(kSumsExponent + 8 == 200, "sums_t holds 8 sums and an exponent");
