// Scoring with NEON, with or without the dot product of Armv8.2. Included by score_neon.cpp and score_dotprod.cpp, which
// are compiled for the one and the other.

#include <arm_neon.h>

#include "attend.inl"

namespace {

constexpr int kQueries = 4;
using Dots = Ints;
constexpr bool kUsual = true;

struct Fours {  // a vector of 16 lanes
    int32x4_t four[4];

    Ints all() const {
        Ints joined;
        std::memcpy(&joined, four, sizeof joined);
        return joined;
    }
};

inline int8x16_t quad(const int8_t* q) {
    int32_t four;
    std::memcpy(&four, q, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

// What gathers products of four tokens with four dimensions each.
struct Sum {
#ifdef __ARM_FEATURE_DOTPROD
    int32x4_t all = vdupq_n_s32(0);

    void add(int8x16_t keys, int8x16_t q) { all = vdotq_s32(all, keys, q); }
    int32x4_t tokens() const { return all; }
#else
    int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);  // two tokens each, in two parts that are neighbours

    void add(int8x16_t keys, int8x16_t q) {  // a product of two bytes fits 16 bits, two of them may not
        low = vpadalq_s16(low, vmull_s8(vget_low_s8(keys), vget_low_s8(q)));
        high = vpadalq_s16(high, vmull_s8(vget_high_s8(keys), vget_high_s8(q)));
    }
    int32x4_t tokens() const { return vpaddq_s32(low, high); }
#endif
};

struct Sums {
    Sum four[4];

    Ints dot() const {
        Fours dot;
        for (int t = 0; t < 4; t++) dot.four[t] = four[t].tokens();
        return dot.all();
    }
};

struct Int8Keys {  // bytes are signed here: the bias is taken out of them, and none of the sum
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int8;
    struct Step {
        int8x16_t four[4];
    };
    using Sums = ::Sums;
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) {
        Step step;
        for (int t = 0; t < 4; t++)
            step.four[t] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(key + 16 * t), vdupq_n_u8(0x80)));
        return step;
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        for (int t = 0; t < 4; t++) sums.four[t].add(step.four[t], quad(q));
    }
    static Ints dot(const Sums& sums, int32_t) { return sums.dot(); }
};

struct Int4Keys {
    static constexpr hillinfer::KeyFormat kFormat = hillinfer::KeyFormat::int4;
    struct Step {
        int8x16_t low[4], high[4];
    };
    using Sums = ::Sums;
    static const int8_t* queries(const hillinfer::Query& query) { return query.q8.data(); }
    static Step load(const uint8_t* key, float) {
        Step step;
        for (int t = 0; t < 4; t++) {
            const uint8x16_t both = vld1q_u8(key + 16 * t);
            step.low[t] = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(0x0f)));
            step.high[t] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
        }
        return step;
    }
    static void add(Sums& sums, const Step& step, const int8_t* q) {
        for (int t = 0; t < 4; t++) {
            sums.four[t].add(step.low[t], quad(q));
            sums.four[t].add(step.high[t], quad(q + 4));
        }
    }
    static Ints dot(const Sums& sums, int32_t bias) { return sums.dot() - bias; }
};

inline Floats cast(const uint8_t* halves, float scale) {
    Floats all;
    for (int t = 0; t < 4; t++) {
        const uint16x4_t bits = vld1_u16(reinterpret_cast<const uint16_t*>(halves) + 4 * t);
        const float32x4_t x = vcvt_f32_f16(vreinterpret_f16_u16(bits));
        const uint32x4_t number = vandq_u32(vreinterpretq_u32_f32(vmulq_n_f32(x, scale)), vceqq_f32(x, x));
        const float32x4_t above = vmaxq_f32(vreinterpretq_f32_u32(number), vdupq_n_f32(-127));
        const float32x4_t whole = vrndnq_f32(vminq_f32(above, vdupq_n_f32(127)));
        std::memcpy(reinterpret_cast<char*>(&all) + t * sizeof whole, &whole, sizeof whole);
    }
    return all;
}

inline Dots larger(const Dots& a, const Dots& b) { return a > b ? a : b; }

inline Ints scaled(Ints dot, int32_t m, int shift) {
    Fours x;
    std::memcpy(x.four, &dot, sizeof dot);
    const int64x2_t right = vdupq_n_s64(-shift);
    for (int32x4_t& four : x.four) {
        const int64x2_t low = vmull_n_s32(vget_low_s32(four), m), high = vmull_n_s32(vget_high_s32(four), m);
        four = vcombine_s32(vmovn_s64(vshlq_s64(low, right)), vmovn_s64(vshlq_s64(high, right)));
    }
    return x.all();
}

}  // namespace

#include "whole_ranks.inl"
#include "score.inl"
#include "select.inl"

#include "bounds.inl"
