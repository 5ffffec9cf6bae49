#include "quantise.h"

#include <algorithm>
#include <cmath>

namespace hillinfer {

static constexpr float kWhole = 3 << 22;  // floats from here on are integers
static constexpr int32_t kMostOffset = (1 << 23) - 1;

// The smallest right shift, the same for all heads, after which no score can leave int16.
static int common_shift(const Quantised& to, size_t heads, size_t group, size_t head_dim, const int8_t* lowest,
                        bool sum) {
    double worst = 0;
    for (size_t i = 0; i < heads * group; i++) {
        const int shift = std::clamp(to.r[i] + lowest[i / group], 0, 40);
        int32_t total = 0;
        for (size_t d = 0; d < head_dim; d++) total += std::abs(int(to.q8[i * head_dim + d]));
        const double bound = std::ldexp(total * 127.0 * to.m[i], -shift);
        worst = sum ? worst + bound : std::max(worst, bound);
    }
    return worst > INT16_MAX ? std::max(0, int(std::ceil(std::log2(worst / INT16_MAX)))) : 0;
}

Quantised quantise(const float* query, size_t heads, size_t group, size_t head_dim, double scaling,
                   const float* normaliser, const int8_t* lowest, bool sum) {
    const size_t queries = heads * group;
    Quantised to{std::vector<int8_t>(queries * head_dim), std::vector<int32_t>(queries), std::vector<int32_t>(queries),
                 std::vector<int32_t>(queries)};
    for (size_t i = 0; i < queries; i++) {
        const float* from = query + i * head_dim;
        float largest = 0;
        for (size_t d = 0; d < head_dim; d++) largest = std::max(largest, std::fabs(from[d]));
        const float step = std::max(largest, 1e-30f) / 127.0f;
        const float sign = scaling < 0 ? -1.0f : 1.0f;
        for (size_t d = 0; d < head_dim; d++)  // adding kWhole rounds to the nearest integer, half to even
            to.q8[i * head_dim + d] = int8_t(sign * (from[d] / step + kWhole - kWhole));
        int exponent;
        const double fraction = std::frexp(double(step) * std::fabs(scaling) * kUnitsPerNat, &exponent);
        const int r = 16 - exponent;  // a logit off the scale saturates, or is 0
        to.m[i] = r < 0 ? 65535 : r > 63 ? 0 : int(std::min(std::nearbyint(fraction * 65536), 65535.0));
        to.r[i] = std::clamp(r, 0, 63);
        if (normaliser)
            to.o[i] = int32_t(std::clamp(std::nearbyint(normaliser[i] * float(kUnitsPerNat)), -float(kMostOffset),
                                         float(kMostOffset)));
    }
    if (!normaliser) {
        const int shift = common_shift(to, heads, group, head_dim, lowest, sum);
        for (int32_t& r : to.r) r = std::min(r + shift, 63);
    }
    return to;
}

}  // namespace hillinfer
