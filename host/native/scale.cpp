#include "scale.h"

#include <algorithm>
#include <cstring>

namespace hillinfer {

constexpr int kLowest = -16, kExponents = 32;

static float power(int exponent) {  // 2^exponent
    const uint32_t bits = uint32_t(exponent + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

static Scale scale_of(const Query& query, size_t at, int exponent) {
    const int32_t m = query.m[at], shift = std::clamp(query.r[at] + exponent, 0, 40);
    const int64_t largest = int64_t(query.largest[at]) * m >> shift;
    return {query.bias[at],
            m,
            shift,
            query.o[at],
            float(m) * power(-shift),
            float(query.o[at]),
            shift <= 32 && m >= 0 && m < 1 << 24 && query.largest[at] < 1 << 24 && largest < (1 << 23) - 1};
}

Scales::Scales(const Query& query)
    : query_(query),
      scales_(new Scale[kExponents * query.m.size()]),
      made_(kExponents * query.active.size()),
      tile_(query.active.size()) {}

Scales::~Scales() = default;

const Head* Scales::of_tile(const int8_t* exponents) {
    const size_t active = tile_.size();
    for (size_t a = 0; a < active; a++) {
        const int exponent = std::clamp<int>(exponents[query_.active[a]] - kLowest, 0, kExponents - 1);
        if (!made_[exponent * active + a].scales) make(a, exponent);
        tile_[a] = made_[exponent * active + a];
    }
    return tile_.data();
}

void Scales::make(size_t a, int exponent) {
    Scale* scales = scales_.get() + exponent * query_.m.size() + a * query_.group;
    bool usual = !query_.sum;
    for (int g = 0; g < query_.group; g++) {
        scales[g] = scale_of(query_, a * query_.group + g, exponent + kLowest);
        usual = usual && scales[g].plain;
    }
    made_[exponent * tile_.size() + a] = {scales, power(exponent + kLowest), usual};
}

}  // namespace hillinfer
