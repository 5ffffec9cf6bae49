// Scoring in plain C++: for every processor, and the measure of the others.
#include "variant.h"

#include "attend.inl"

namespace hillinfer {

static int32_t saturate24(int64_t x) { return int32_t(std::clamp<int64_t>(x, -(1 << 23), (1 << 23) - 1)); }

static void score(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    const int width = query.head_dim;
    for (size_t g = 0; g < tiles * (kTile / kGroup); g++, scores += kGroup) {
        const int8_t* exponent = exponents + g / (kTile / kGroup) * query.heads;
        int64_t best[kGroup];
        std::fill(best, best + kGroup, query.sum ? 0 : INT64_MIN);
        for (size_t a = 0; a < query.active.size(); a++) {
            const uint8_t* key = keys + (g * query.heads + query.active[a]) * width * kGroup;
            const int e = std::clamp<int>(exponent[query.active[a]], -16, 15);
            for (int j = 0; j < query.group; j++) {
                const size_t at = a * query.group + j;
                const int8_t* q = query.q8.data() + at * width;
                int32_t dot[kGroup] = {};
                for (int d = 0; d < width; d++)
                    for (int t = 0; t < kGroup; t++)
                        dot[t] += q[d] * key[(d / kQuad * kGroup + t) * kQuad + d % kQuad];
                const int shift = std::clamp(query.r[at] + e, 0, 40);
                for (int t = 0; t < kGroup; t++) {
                    const int64_t u =
                        saturate24((int64_t(dot[t] - query.bias[at]) * query.m[at]) >> shift) - query.o[at];
                    best[t] = query.sum ? best[t] + u : std::max(best[t], u);
                }
            }
        }
        for (int t = 0; t < kGroup; t++) scores[t] = int16_t(std::clamp<int64_t>(best[t], INT16_MIN, INT16_MAX));
    }
}

const Variant kPortable{"portable", [] { return true; }, score, logits, weigh, accumulate, count_from};

}  // namespace hillinfer
