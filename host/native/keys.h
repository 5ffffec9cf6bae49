// The scanning layout of INT8 keys, and what a query is to the scorer.
//
// A tile of 64 tokens is four groups of 16. A group holds, for each KV head, its dimensions four at a time: 64 bytes are
// 4 dimensions of 16 tokens, token after token. A vector register then carries 16 tokens side by side, and their sums
// need no horizontal addition. Bytes are key + 128, the unsigned operand that dot-product instructions want; the
// constant is taken out again through the query (Σ q·(k + 128) − 128·Σ q).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hillinfer {

constexpr int kTile = 64;     // tokens that share exponents (kernel.md)
constexpr int kGroup = 16;    // tokens side by side in the scanning layout
constexpr int kQuad = 4;      // dimensions side by side
constexpr int kBlock = 1024;  // tokens per Score Block
constexpr uint8_t kBias = 128;

inline int padded(int head_dim) { return (head_dim + kQuad - 1) / kQuad * kQuad; }
inline size_t tile_bytes(int heads, int head_dim) { return size_t(kTile) * heads * padded(head_dim); }

// One layer's quantised queries (kernel.md, "What it computes"), only those of the KV heads that take part.
struct Query {
    int heads = 0;              // KV heads of a key
    int group = 0;              // queries per KV head
    int head_dim = 0;           // padded to a multiple of 4
    bool sum = false;           // else the maximum
    std::vector<int> active;    // KV heads that take part
    std::vector<int8_t> q8;     // [active][group][head_dim]
    std::vector<int32_t> bias;  // [active][group]: 128·Σ q8
    std::vector<int32_t> m, r, o;  // [active][group]
};

// Keys int8 [tokens][heads][dim] into the layout, as tokens first, first + 1, … of `tiles`.
void pack_keys(const int8_t* keys, size_t tokens, int heads, int dim, uint8_t* tiles, size_t first);

// Cast one key [heads][dim] with the exponents its tile has, as hillinfer.kv.keys does, and pack it as token `place`.
// False, and nothing is written, when the key is too large for them or not finite.
bool pack_with(const float* key, int heads, int dim, const int8_t* exponents, int limit, uint8_t* tiles, size_t place);

}  // namespace hillinfer
