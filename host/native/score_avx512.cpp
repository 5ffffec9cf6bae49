// Scoring with AVX-512 and its byte dot product (VNNI): 64 multiply-adds an instruction.
#include "variant.h"

#include <immintrin.h>

#include "attend.inl"

namespace {

constexpr int kQueries = 8;
constexpr bool kUsual = true;

inline __m512i quad(const int8_t* q) {
    int32_t four;
    std::memcpy(&four, q, sizeof four);
    return _mm512_set1_epi32(four);
}

struct Int8Keys {
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int8;
    using Step = __m512i;
    struct Sums {
        __m512i all = _mm512_setzero_si512();
    };
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) { return _mm512_loadu_si512(key); }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        sums.all = _mm512_dpbusd_epi32(sums.all, step, quad(q));
    }
    static Ints dot(const Sums& sums, int32_t bias) { return Ints(sums.all) - bias; }
};

struct Int4Keys {
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int4;
    struct Step {
        __m512i low, high;  // high nibbles stay where they are: 16 times too large until the end
    };
    struct Sums {
        __m512i low = _mm512_setzero_si512(), high = _mm512_setzero_si512();
    };
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) {
        const __m512i both = _mm512_loadu_si512(key);
        return {_mm512_and_si512(both, _mm512_set1_epi8(0x0f)), _mm512_and_si512(both, _mm512_set1_epi8(char(0xf0)))};
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        sums.low = _mm512_dpbusd_epi32(sums.low, step.low, quad(q));
        sums.high = _mm512_dpbusd_epi32(sums.high, step.high, quad(q + 4));
    }
    static Ints dot(const Sums& sums, int32_t bias) { return Ints(sums.low) + (Ints(sums.high) >> 4) - bias; }
};

inline Floats cast(const uint8_t* halves, float scale) {
    __m512 x = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)));
    x = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, _mm512_set1_ps(scale));
    x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-127)), _mm512_set1_ps(127));
    return Floats(_mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// Products of even and odd lanes are 64 bits wide; each is moved to where its lane is. With m shifted up, where it has
// room, the high halves are what is wanted already.
inline Ints scaled(Ints dot, int32_t m, int shift) {
    const __m512i x = __m512i(dot), odd_x = _mm512_shuffle_epi32(x, _MM_PERM_DDBB);
    if (__builtin_expect(shift >= 17, true)) {
        const __m512i factor = _mm512_set1_epi32(m << (32 - shift));
        const __m512i even = _mm512_mul_epi32(x, factor), odd = _mm512_mul_epi32(odd_x, factor);
        return Ints(_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB));
    }
    const __m512i factor = _mm512_set1_epi32(m);
    const __m512i even = _mm512_mul_epi32(x, factor), odd = _mm512_mul_epi32(odd_x, factor);
    return Ints(_mm512_mask_blend_epi32(0xaaaa, _mm512_srl_epi64(even, _mm_cvtsi32_si128(shift)),
                                        _mm512_sll_epi64(odd, _mm_cvtsi32_si128(32 - shift))));
}

}  // namespace

#include "score.inl"
#include "select.inl"

#include "bounds.inl"

namespace hillinfer {

static bool supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

const Variant kAvx512{"avx512", supported, score, logits, weigh, accumulate, count_from, range, collect, read_words,
                       multiply_steps};

}  // namespace hillinfer
