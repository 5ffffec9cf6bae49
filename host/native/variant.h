// What is compiled once per instruction set, and the table through which it is called.
#pragma once

#include <utility>

#include "keys.h"

namespace hillinfer {

enum class Element : int { float32, bfloat16, float16 };

// Where the keys and values of a token lie: [K of every head | V of every head].
struct RowShape {
    int heads, group, head_dim;
    Element element;
    size_t row_bytes;
};

// The keys of a token, or its values.
inline size_t key_bytes(const RowShape& shape) {
    return size_t(shape.heads) * shape.head_dim * (shape.element == Element::float32 ? 4 : 2);
}

struct Variant {
    const char* name;
    bool (*supported)();

    // Scores int16 [tiles·64] of keys in the scanning layout, with exponents [tiles][heads].
    void (*score)(const Query&, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores);

    // Logits [group][n] of one head's queries [group][head_dim] with n rows, of `known` that come one after the other.
    // Those of query g begin at logits[g·stride].
    void (*logits)(const RowShape&, int head, const float* query, const char* const* rows, size_t n, size_t known,
                   float* logits, size_t stride);

    // logits[n] become their softmax; returns the log-sum-exp.
    float (*weigh)(float* logits, size_t n);

    // sums [group][head_dim] += Σ weights[g·stride + i] · V of rows[i], i < n, of `known` as above.
    // Only dimensions first … last − 1 of it, multiples of 16 but for the last one's end.
    void (*accumulate)(const RowShape&, int head, const float* weights, size_t stride, const char* const* rows, size_t n,
                       size_t known, float* sums, int first, int last);

    // How many of scores[n] are at least `least`; their lowest and highest (n > 0); and where those that are at least
    // `least` are, from `begin` to `end`, into `room` positions, which must suffice: returns how many.
    size_t (*count_from)(const int16_t* scores, size_t n, int16_t least);
    std::pair<int16_t, int16_t> (*range)(const int16_t* scores, size_t n);
    size_t (*collect)(const int16_t* scores, size_t begin, size_t end, int16_t least, int64_t* positions, size_t room);

    // What a core can do at best, for benchmarks: bounds.inl.
    uint64_t (*read_words)(const uint8_t* bytes, size_t n, bool parts);
    size_t (*multiply_steps)(size_t rounds);
};

extern const Variant kAvx512, kAvx2, kDotprod, kNeon, kPortable;  // those the processor's family has

const std::vector<const Variant*>& variants();  // those this processor can run, best first
const Variant& variant();                       // the one in use
bool use_variant(const char* name);             // false if there is none of that name

}  // namespace hillinfer
