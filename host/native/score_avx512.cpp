// Scoring with AVX-512 and its byte dot product (VNNI): 64 multiply-adds an instruction.
#include "variant.h"

#include <immintrin.h>

#include "attend.inl"

namespace {

constexpr int kQueries = 8;
using Dots = Ints;
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
        __m512i both = _mm512_loadu_si512(key);
        asm("" : "+v"(both));  // in a register: GCC would load it twice, and loads are what bounds one query
        return {_mm512_and_si512(both, _mm512_set1_epi8(0x0f)), _mm512_and_si512(both, _mm512_set1_epi8(char(0xf0)))};
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        sums.low = _mm512_dpbusd_epi32(sums.low, step.low, quad(q));
        sums.high = _mm512_dpbusd_epi32(sums.high, step.high, quad(q + 4));
    }
    static Ints dot(const Sums& sums, int32_t bias) { return Ints(sums.low) + (Ints(sums.high) >> 4) - bias; }
};

inline Floats cast(const uint8_t* halves, float scale) {
    const __m512 x = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)));
    constexpr float kWhole = 0x1.8p23f;  // floats around it are integers: adding it rounds
    const __m512 rounded = _mm512_fmadd_ps(x, _mm512_set1_ps(scale), _mm512_set1_ps(kWhole));
    const __m512 bounded = _mm512_min_ps(_mm512_max_ps(rounded, _mm512_set1_ps(kWhole - 127)), _mm512_set1_ps(kWhole + 127));
    return Floats(_mm512_maskz_sub_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), bounded, _mm512_set1_ps(kWhole)));
}

// Everything is exact in float32 but the product less the offset, and that is rounded down: so it is at least the integer
// below it, which float32 has (|o| ≤ 2^23 and the logit is below 2^23), and which is found at the end.
class Ranking {
  public:
    using Ranks = Floats;

    explicit Ranking(const hillinfer::Query& query)
        : group_(query.group), per_query_(query.factor.data()), offsets_(query.offset.data()), factors_(query.m.size()) {}

    void set(size_t a, int exponent) {
        const float down = hillinfer::power_of_two(-exponent);
        for (size_t at = a * group_; at < (a + 1) * group_; at++) factors_[at] = per_query_[at] * down;
    }

    Ranks rank(Ints dot, size_t at) const {
        return Ranks(_mm512_fmsub_round_ps(_mm512_cvtepi32_ps(__m512i(dot)), _mm512_set1_ps(factors_[at]),
                                           _mm512_set1_ps(offsets_[at]), kDown));
    }
    static Ranks least() { return Ranks{} + INT32_MIN; }
    static Ranks larger(Ranks a, Ranks b) { return Ranks(_mm512_max_ps(__m512(a), __m512(b))); }
    static Ints whole(Ranks ranks) { return Ints(_mm512_cvt_roundps_epi32(__m512(ranks), kDown)); }

  private:
    static constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

    const size_t group_;
    const float *per_query_, *offsets_;
    std::vector<float> factors_;  // [active][group]: with the tile's exponent
};

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
