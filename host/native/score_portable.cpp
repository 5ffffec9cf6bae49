// Scoring in plain C++: for every processor, and the measure of the others.
#include "variant.h"

#include "attend.inl"

namespace {

constexpr int kQueries = 1;
using Dots = Ints;
constexpr bool kUsual = false;

struct Int8Keys {
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int8;
    using Step = Ints;  // four bytes of each token
    using Sums = Ints;
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) {
        Step step;
        std::memcpy(&step, key, sizeof step);
        return step;
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        for (int i = 0; i < 4; i++) sums += (step >> 8 * i & 0xff) * q[i];
    }
    static Ints dot(const Sums& sums, int32_t bias) { return sums - bias; }
};

struct Int4Keys : Int8Keys {
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int4;
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        for (int i = 0; i < 4; i++) sums += (step >> 8 * i & 0x0f) * q[i] + (step >> (8 * i + 4) & 0x0f) * q[4 + i];
    }
};

inline Floats cast(const uint8_t* halves, float scale) {
    Halves narrow;
    std::memcpy(&narrow, halves, sizeof narrow);
    const Ints bits = __builtin_convertvector(narrow, Ints), magnitude = (bits & 0x7fff) << 13;
    // Subnormal halves are made in normal numbers: whether the processor flushes the others must not matter.
    const Floats normal = Floats(magnitude + (112 << 23)), small = Floats(magnitude + (113 << 23)) - 0x1p-14f;
    Floats x = ((bits & 0x7c00) == 0 ? small : normal) * scale;
    x = (bits & 0x7c00) == 0x7c00 ? ((bits & 0x3ff) == 0 ? Floats{} + 127 : Floats{}) : x;
    x = x > 127 ? Floats{} + 127 : x;
    x = (x + 0x1.8p23f) - 0x1.8p23f;  // rounds half to even
    return (bits & 0x8000) == 0 ? x : -x;
}

inline Dots larger(const Dots& a, const Dots& b) { return a > b ? a : b; }

inline Ints scaled(Ints dot, int32_t m, int shift) {
    for (int i = 0; i < kLanes; i++) dot[i] = int32_t(int64_t(dot[i]) * m >> shift);
    return dot;
}

}  // namespace

#include "whole_ranks.inl"
#include "score.inl"
#include "select.inl"

#include "bounds.inl"

namespace hillinfer {

const Variant kPortable{"portable", [] { return true; }, score, logits, weigh, accumulate, count_from, range, collect,
                        read_words, multiply_steps};

}  // namespace hillinfer
