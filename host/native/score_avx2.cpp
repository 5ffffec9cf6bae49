// Scoring with AVX2. Its byte products saturate, so bytes are widened to 16 bits first: exact, half as fast.
#include "variant.h"

#include "attend.inl"

#include <immintrin.h>

namespace hillinfer {

namespace {

// floor(dot · scale) saturated to 24 bits, of four tokens; exact in double.
inline __m128i logit(__m128i dot, __m256d scale) {
    __m256d x = _mm256_mul_pd(_mm256_cvtepi32_pd(dot), scale);
    x = _mm256_min_pd(_mm256_max_pd(x, _mm256_set1_pd(-8388608.0)), _mm256_set1_pd(8388607.0));
    return _mm256_cvtpd_epi32(_mm256_floor_pd(x));
}

// Dot products of one query with 16 tokens, four tokens in each of `out`.
inline void dots(const int8_t* query, int head_dim, const uint8_t* key, __m128i out[4]) {
    __m256i sums[4] = {};
    for (int d = 0; d < head_dim; d += kQuad) {
        int32_t quad;
        std::memcpy(&quad, query + d, sizeof quad);
        const __m256i q = _mm256_cvtepi8_epi16(_mm_set1_epi32(quad));
        for (int t = 0; t < 4; t++) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key + d * kGroup) + t);
            sums[t] = _mm256_add_epi32(sums[t], _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), q));
        }
    }
    for (int t = 0; t < 4; t++)  // a token's two halves are neighbours
        out[t] = _mm_hadd_epi32(_mm256_castsi256_si128(sums[t]), _mm256_extracti128_si256(sums[t], 1));
}

void score(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    for (size_t g = 0; g < tiles * (kTile / kGroup); g++, scores += kGroup) {
        const int8_t* exponent = exponents + g / (kTile / kGroup) * query.heads;
        __m128i most[4];
        int64_t total[kGroup] = {};
        for (__m128i& four : most) four = _mm_set1_epi32(INT32_MIN);
        for (size_t a = 0; a < query.active.size(); a++) {
            const uint8_t* key = keys + (g * query.heads + query.active[a]) * query.head_dim * kGroup;
            const int e = std::clamp<int>(exponent[query.active[a]], -16, 15);
            for (size_t at = a * query.group; at < (a + 1) * query.group; at++) {
                __m128i dot[4];
                dots(query.q8.data() + at * query.head_dim, query.head_dim, key, dot);
                const int shift = std::clamp(query.r[at] + e, 0, 40);
                const __m256d scale = _mm256_set1_pd(std::ldexp(double(query.m[at]), -shift));
                for (int t = 0; t < 4; t++) {
                    const __m128i product = _mm_sub_epi32(dot[t], _mm_set1_epi32(query.bias[at]));
                    const __m128i u = _mm_sub_epi32(logit(product, scale), _mm_set1_epi32(query.o[at]));
                    most[t] = _mm_max_epi32(most[t], u);
                    if (query.sum) {
                        alignas(16) int32_t each[4];
                        _mm_store_si128(reinterpret_cast<__m128i*>(each), u);
                        for (int i = 0; i < 4; i++) total[4 * t + i] += each[i];
                    }
                }
            }
        }
        if (query.sum) {
            for (int t = 0; t < kGroup; t++) scores[t] = int16_t(std::clamp<int64_t>(total[t], INT16_MIN, INT16_MAX));
        } else {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(scores), _mm_packs_epi32(most[0], most[1]));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(scores + 8), _mm_packs_epi32(most[2], most[3]));
        }
    }
}

bool supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

}  // namespace

const Variant kAvx2{"avx2", supported, score, logits, weigh, accumulate, count_from};

}  // namespace hillinfer
