// The scanning layouts of keys, and what a query is to the scorer.
//
// A tile of 64 tokens is four groups of 16. A group holds, for each KV head, its dimensions step by step, and a step is
// some dimensions of all 16 tokens: a vector register then carries 16 tokens side by side, and their sums need no
// horizontal addition.
//
//   int8   64 bytes: 4 dimensions of each token, token after token, as key + 128
//   int4   64 bytes: 8 dimensions of each token, as key + 8: the first 4 in the low nibbles, the last 4 in the high ones
//   fp16   32 bytes: 1 dimension of each token, as it is; cast to INT8 with the tile's exponent when it is scored
//
// Bytes and nibbles are biased, for they are the unsigned operand of dot-product instructions; the constant is taken out
// again through the query (Σ q·(k + 128) − 128·Σ q).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hillinfer {

constexpr int kTile = 64;     // tokens that share exponents (kernel.md)
constexpr int kGroup = 16;    // tokens side by side in the scanning layout
constexpr int kBlock = 1024;  // tokens per Score Block

enum class KeyFormat : int { int8, int4, fp16 };

// What a step of the layout is, and what its integers are.
struct Layout {
    int dims, bytes;  // of a step
    int limit;        // integers are at most this, and at least −limit − 1 (INT8 and INT4 as they are stored)
    int bias;         // what is added to them
};

constexpr Layout layout(KeyFormat format) {
    return format == KeyFormat::int8   ? Layout{4, 64, 127, 128}
           : format == KeyFormat::int4 ? Layout{8, 64, 7, 8}
                                       : Layout{1, 32, 127, 0};
}

// 2^exponent of a normal float.
inline float power_of_two(int exponent) {
    const uint32_t bits = uint32_t(exponent + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// Dimensions of a key, filled up to whole steps.
constexpr int padded(int head_dim, KeyFormat format = KeyFormat::int8) {
    const int dims = layout(format).dims;
    return (head_dim + dims - 1) / dims * dims;
}

// Bytes of 16 tokens of one head.
constexpr size_t head_bytes(int head_dim, KeyFormat format) {
    return size_t(padded(head_dim, format)) / layout(format).dims * layout(format).bytes;
}

constexpr size_t tile_bytes(int heads, int head_dim, KeyFormat format = KeyFormat::int8) {
    return kTile / kGroup * heads * head_bytes(head_dim, format);
}

// One layer's quantised queries (kernel.md, "What it computes"), only those of the KV heads that take part.
struct Query {
    KeyFormat format = KeyFormat::int8;  // of the keys it is for
    int heads = 0;                       // KV heads of a key
    int group = 0;                       // queries per KV head
    int head_dim = 0;                    // filled up to whole steps of the layout
    bool sum = false;                    // else the maximum
    std::vector<int> active;             // KV heads that take part
    std::vector<int8_t> q8;              // [active][group][head_dim]
    std::vector<float> wide;             // the same numbers, where they are multiplied so (fp16)
    std::vector<int32_t> bias;           // [active][group]: the layout's bias · Σ q8
    std::vector<int32_t> largest;        // [active][group]: |Σ q8·k8| is at most this
    std::vector<int32_t> m, r, o;        // [active][group]
    std::vector<float> factor, offset;   // [active][group]: m·2^−r and o
    std::vector<int8_t> lowest, highest;  // [active]: exponents between them make no logit that leaves 24 bits

    size_t tile_bytes() const { return hillinfer::tile_bytes(heads, head_dim, format); }

    // Add a query q [dim] of the head that is last in `active`.
    void add(const int8_t* q, int dim, int32_t m, int32_t r, int32_t o);

  private:
    void bound_exponents(int32_t largest, int32_t m, int32_t r, int32_t o);
};

// Keys int8 [tokens][heads][dim] (INT4: −8 to 7) into the layout, as tokens first, first + 1, … of `tiles`.
void pack_keys(KeyFormat format, const int8_t* keys, size_t tokens, int heads, int dim, uint8_t* tiles, size_t first);

// The same of FP16 keys, given as their bits.
void pack_keys(const uint16_t* keys, size_t tokens, int heads, int dim, uint8_t* tiles, size_t first);

// Cast one key [heads][dim] with the exponents its tile has, as hillinfer.kv.keys does, and pack it as token `place`.
// False, and nothing is written, when the key is too large for them or not finite.
bool pack_with(KeyFormat format, const float* key, int heads, int dim, const int8_t* exponents, int limit,
               uint8_t* tiles, size_t place);

}  // namespace hillinfer
