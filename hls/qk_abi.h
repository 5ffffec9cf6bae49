// The ABI of qk_score, version 1: every number that the host and the kernel share, and nothing else.
//
// Plain C++, no HLS headers: a host program can include it as it is. docs/kernel.md explains it; hillinfer/csd/abi.py is
// its Python side, and a test compiles this file and compares the two.
#pragma once

constexpr int QK_ABI_VERSION = 1;

// ---- sizes
constexpr int QK_BEAT_BYTES = 64;  // one 512-bit AXI beat
constexpr int QK_MAX_TOKENS = 1 << 20;  // tokens of one launch
constexpr int QK_TILE_TOKENS = 64;  // tokens that share an exponent
constexpr int QK_BLOCK_TOKENS = 1024;  // tokens of one Score Block
constexpr int QK_TUPLE_BYTES = 4;  // uint16 offset in the block, int16 score
constexpr int QK_TUPLES_PER_BEAT = QK_BEAT_BYTES / QK_TUPLE_BYTES;
constexpr int QK_TUPLE_BEATS = QK_BLOCK_TOKENS / QK_TUPLES_PER_BEAT;
constexpr int QK_SLOT_BEATS = QK_TUPLE_BEATS + 1;  // a Score Block: its tuples, then its trailer
constexpr int QK_MAX_ROW_PASSES = 256;  // most beats of one token's keys, times the passes over each
constexpr int QK_EXPONENTS_PER_BEAT = 64;  // int8, one for each group
constexpr int QK_EXPONENT_MIN = -16;
constexpr int QK_EXPONENT_MAX = 15;
constexpr int QK_SHIFT_MAX = 40;  // r + exponent is clamped to 0 ... 40
constexpr int QK_SLOTS_PER_PASS = 8;  // query slots of one parameter beat

// ---- scalar `shape`: first bit and number of bits
constexpr int QK_SHAPE_BEATS_BIT = 0;  // beats per group, 1 ... 8
constexpr int QK_SHAPE_BEATS_BITS = 4;
constexpr int QK_SHAPE_PAIR_BIT = 4;  // two heads share a beat
constexpr int QK_SHAPE_DUAL_BIT = 5;  // two passes over each key beat
constexpr int QK_SHAPE_BANKS_BIT = 8;  // log2 of the banks in use, 1 ... 4
constexpr int QK_SHAPE_BANKS_BITS = 3;
constexpr int QK_SHAPE_GROUPS_BIT = 16;  // groups per row, 1 ... 256
constexpr int QK_SHAPE_GROUPS_BITS = 9;

// ---- scalar `format`
constexpr int QK_FORMAT_KEYS_BIT = 0;
constexpr int QK_FORMAT_KEYS_BITS = 2;
constexpr int QK_FORMAT_SUM_BIT = 4;  // reduce: 1 sum, 0 max
constexpr int QK_FP16_INT8 = 0;  // FP16 keys, cast to INT8 on the fly
constexpr int QK_FP16_INT4 = 1;  // FP16 keys, cast to INT4 on the fly
constexpr int QK_INT8 = 2;  // stored INT8
constexpr int QK_INT4 = 3;  // stored INT4, low nibble first

// ---- query parameters: 8 bytes a slot, byte offsets
constexpr int QK_PARAM_BYTES = 8;
constexpr int QK_PARAM_M = 0;  // uint16 multiplier
constexpr int QK_PARAM_R = 2;  // uint8 right shift, 0 ... 63
constexpr int QK_PARAM_FLAGS = 3;
constexpr int QK_PARAM_O = 4;  // int32 log-normaliser, of which 24 bits count
constexpr int QK_FLAG_ENABLED_BIT = 0;

// ---- trailer beat of a Score Block: byte offsets of 32-bit words; the words between are zero
constexpr int QK_TRAILER_MAGIC = 0;
constexpr int QK_TRAILER_TAG = 4;
constexpr int QK_TRAILER_FIRST_TOKEN = 8;
constexpr int QK_TRAILER_SCANNED = 12;
constexpr int QK_TRAILER_EMITTED = 16;
constexpr int QK_TRAILER_MAXIMUM = 20;  // int32, over all tokens scanned
constexpr int QK_TRAILER_STATUS = 24;
constexpr int QK_TRAILER_INDEX = 28;  // which block
constexpr int QK_TRAILER_COUNT = 32;  // of how many
constexpr int QK_TRAILER_NOT_TAG = 60;  // ~tag: a torn read shows
constexpr int QK_MAGIC = 0x31534B51;  // "QKS1"
constexpr int QK_NO_SCORE = -32768;  // the maximum where nothing was scanned

// ---- trailer status, ORed; 0: the launch was legal
constexpr int QK_STATUS_TOKENS = 1;
constexpr int QK_STATUS_SHAPE = 2;
constexpr int QK_STATUS_FORMAT = 4;

constexpr unsigned QK_PADDING = 0xFFFFFFFF;  // a tuple that is none
