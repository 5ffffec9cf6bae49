#include "keys.h"

#include <algorithm>
#include <cmath>

namespace hillinfer {

void pack_keys(const int8_t* keys, size_t tokens, int heads, int dim, uint8_t* tiles, size_t first) {
    const int width = padded(dim);
    const size_t group_bytes = size_t(kGroup) * heads * width;
    for (size_t t = 0; t < tokens; t++) {
        uint8_t* group = tiles + (first + t) / kGroup * group_bytes + (first + t) % kGroup * kQuad;
        for (int h = 0; h < heads; h++, keys += dim)
            for (int i = 0; i < width; i++) {
                const uint8_t byte = i < dim ? uint8_t(keys[i]) ^ kBias : kBias;
                group[(size_t(h) * width + i / kQuad * kQuad) * kGroup + i % kQuad] = byte;
            }
    }
}

bool pack_with(const float* key, int heads, int dim, const int8_t* exponents, int limit, uint8_t* tiles, size_t place) {
    std::vector<int8_t> integers(size_t(heads) * dim);
    for (int h = 0; h < heads; h++) {
        float largest = 0;
        for (int i = 0; i < dim; i++) {
            const float half = float(_Float16(key[h * dim + i]));  // what the kernel would read
            if (!std::isfinite(half)) return false;
            largest = std::max(largest, std::fabs(half));
            const float scaled = std::nearbyint(std::ldexp(half, exponents[h]));
            integers[h * dim + i] = int8_t(std::clamp(scaled, float(-limit), float(limit)));
        }
        int exponent;
        std::frexp(float(limit) / std::max(largest, 1e-30f), &exponent);
        if (std::clamp(exponent - 1, -16, 15) < exponents[h]) return false;
    }
    pack_keys(integers.data(), 1, heads, dim, tiles, place);
    return true;
}

}  // namespace hillinfer
