// Scoring with AVX2. Its products of bytes saturate, so those of INT8 are widened to 16 bits first: exact, half as fast.
#include "variant.h"

#include <immintrin.h>

#include "attend.inl"

namespace {

constexpr int kQueries = 3;
constexpr bool kUsual = true;

struct Dots {  // of 16 tokens
    __m256i low, high;

    Dots operator-(int32_t number) const {
        const __m256i all = _mm256_set1_epi32(number);
        return {_mm256_sub_epi32(low, all), _mm256_sub_epi32(high, all)};
    }
};

inline Dots larger(const Dots& a, const Dots& b) {
    return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)};
}

inline __m256i quad(const int8_t* q) {
    int32_t four;
    std::memcpy(&four, q, sizeof four);
    return _mm256_set1_epi32(four);
}

inline __m256i load(const uint8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }

struct Int8Keys {
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int8;
    struct Step {
        __m256i four[4];  // tokens each, 16 bits a dimension
    };
    struct Sums {
        __m256i four[4] = {};  // tokens each, in two parts that are neighbours
    };
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) {
        Step step;
        for (int t = 0; t < 4; t++)
            step.four[t] = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(key) + t));
        return step;
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        const __m256i wide = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(quad(q)));
        for (int t = 0; t < 4; t++)
            sums.four[t] = _mm256_add_epi32(sums.four[t], _mm256_madd_epi16(step.four[t], wide));
    }
    static Dots dot(const Sums& sums, int32_t bias) {
        auto eight = [](__m256i a, __m256i b) {
            return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), _MM_SHUFFLE(3, 1, 2, 0));
        };
        return Dots{eight(sums.four[0], sums.four[1]), eight(sums.four[2], sums.four[3])} - bias;
    }
};

struct Int4Keys {  // a sum of two products of a nibble and a byte stays within 16 bits
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int4;
    struct Step {
        __m256i low[2], high[2];  // eight tokens each
    };
    struct Sums {
        __m256i eight[2] = {};
    };
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) {
        Step step;
        const __m256i nibble = _mm256_set1_epi8(0x0f);
        for (int t = 0; t < 2; t++) {
            const __m256i both = ::load(key + t * sizeof both);
            step.low[t] = _mm256_and_si256(both, nibble);
            step.high[t] = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
        }
        return step;
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        for (int t = 0; t < 2; t++) {
            const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(step.low[t], quad(q)),
                                                   _mm256_maddubs_epi16(step.high[t], quad(q + 4)));
            sums.eight[t] = _mm256_add_epi32(sums.eight[t], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
    }
    static Dots dot(const Sums& sums, int32_t bias) { return Dots{sums.eight[0], sums.eight[1]} - bias; }
};

inline Floats cast(const uint8_t* halves, float scale) {
    Floats all;
    for (int t = 0; t < 2; t++) {
        const __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves) + t));
        const __m256 number = _mm256_and_ps(_mm256_mul_ps(x, _mm256_set1_ps(scale)), _mm256_cmp_ps(x, x, _CMP_ORD_Q));
        const __m256 bounded = _mm256_min_ps(_mm256_max_ps(number, _mm256_set1_ps(-127)), _mm256_set1_ps(127));
        const __m256 whole = _mm256_round_ps(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        std::memcpy(reinterpret_cast<char*>(&all) + t * sizeof whole, &whole, sizeof whole);
    }
    return all;
}

// Products of even and odd lanes are 64 bits wide; each is moved to where its lane is.
inline Dots scaled(const Dots& dot, int32_t m, int shift) {
    const __m256i factor = _mm256_set1_epi32(m);
    const __m128i right = _mm_cvtsi32_si128(shift), left = _mm_cvtsi32_si128(32 - shift);
    auto eight = [&](__m256i x) {
        const __m256i even = _mm256_mul_epi32(x, factor), odd = _mm256_mul_epi32(_mm256_srli_epi64(x, 32), factor);
        return _mm256_blend_epi32(_mm256_srl_epi64(even, right), _mm256_sll_epi64(odd, left), 0xaa);
    };
    return {eight(dot.low), eight(dot.high)};
}

}  // namespace

#include "whole_ranks.inl"
#include "score.inl"
#include "select.inl"

#include "bounds.inl"

namespace hillinfer {

static bool supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

const Variant kAvx2{"avx2", supported, score, logits, weigh, accumulate, count_from, range, collect, read_words,
                       multiply_steps};

}  // namespace hillinfer
