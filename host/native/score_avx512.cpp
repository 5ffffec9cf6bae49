// Scoring with AVX-512 and its byte dot product (VNNI): 64 multiply-adds an instruction.
#include "variant.h"

#include "attend.inl"

#include <immintrin.h>

namespace hillinfer {

namespace {

// floor(dot · scale) saturated to 24 bits; scale = m·2^−shift is exact in double, and so is the product (40 bits).
inline __m256i logit(__m256i dot, __m512d scale) {
    __m512d x = _mm512_mul_pd(_mm512_cvtepi32_pd(dot), scale);
    x = _mm512_min_pd(_mm512_max_pd(x, _mm512_set1_pd(-8388608.0)), _mm512_set1_pd(8388607.0));
    return _mm512_cvt_roundpd_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

struct Best {  // of 16 tokens
    __m512i most = _mm512_set1_epi32(INT32_MIN);
    __m512i low = _mm512_setzero_si512(), high = low;  // sums, 64 bits: any number of heads
};

template <int G>
inline void score_queries(const Query& query, size_t first, const uint8_t* key, int e, Best& best) {
    __m512i dot[G];
    for (int j = 0; j < G; j++) dot[j] = _mm512_set1_epi32(-query.bias[first + j]);
    const int8_t* q = query.q8.data() + first * query.head_dim;
    for (int d = 0; d < query.head_dim; d += kQuad) {
        const __m512i k = _mm512_loadu_si512(key + d * kGroup);
        for (int j = 0; j < G; j++) {
            int32_t quad;
            std::memcpy(&quad, q + size_t(j) * query.head_dim + d, sizeof quad);
            dot[j] = _mm512_dpbusd_epi32(dot[j], k, _mm512_set1_epi32(quad));
        }
    }
    for (int j = 0; j < G; j++) {
        const int shift = std::clamp(query.r[first + j] + e, 0, 40);
        const __m512d scale = _mm512_set1_pd(std::ldexp(double(query.m[first + j]), -shift));
        const __m256i low = logit(_mm512_castsi512_si256(dot[j]), scale);
        const __m256i high = logit(_mm512_extracti64x4_epi64(dot[j], 1), scale);
        const __m512i u = _mm512_sub_epi32(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1),
                                           _mm512_set1_epi32(query.o[first + j]));
        if (query.sum) {
            best.low = _mm512_add_epi64(best.low, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(u)));
            best.high = _mm512_add_epi64(best.high, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(u, 1)));
        } else {
            best.most = _mm512_max_epi32(best.most, u);
        }
    }
}

void score(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    for (size_t g = 0; g < tiles * (kTile / kGroup); g++, scores += kGroup) {
        const int8_t* exponent = exponents + g / (kTile / kGroup) * query.heads;
        Best best;
        for (size_t a = 0; a < query.active.size(); a++) {
            const uint8_t* key = keys + (g * query.heads + query.active[a]) * query.head_dim * kGroup;
            const int e = std::clamp<int>(exponent[query.active[a]], -16, 15);
            size_t at = a * query.group;
            int left = query.group;
            for (; left >= 4; left -= 4, at += 4) score_queries<4>(query, at, key, e, best);
            if (left == 3) score_queries<3>(query, at, key, e, best);
            if (left == 2) score_queries<2>(query, at, key, e, best);
            if (left == 1) score_queries<1>(query, at, key, e, best);
        }
        if (query.sum) {
            const __m128i low = _mm512_cvtsepi64_epi16(best.low), high = _mm512_cvtsepi64_epi16(best.high);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(scores), low);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(scores + 8), high);
        } else {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(scores), _mm512_cvtsepi32_epi16(best.most));
        }
    }
}

bool supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

}  // namespace

const Variant kAvx512{"avx512", supported, score, logits, weigh, accumulate, count_from};

}  // namespace hillinfer
