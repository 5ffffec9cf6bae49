#include "keys.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace hillinfer {

#ifdef __aarch64__
using Half = __fp16;  // GCC has no _Float16 in C++ there before its version 13
#else
using Half = _Float16;
#endif

void Query::add(const int8_t* q, int dim, int32_t m, int32_t r, int32_t o) {
    int32_t total = 0, absolute = 0;
    for (int d = 0; d < dim; d++) total += q[d], absolute += std::abs(int(q[d]));
    q8.insert(q8.end(), q, q + dim);
    q8.resize(q8.size() + head_dim - dim);
    if (format == KeyFormat::fp16) wide.insert(wide.end(), q, q + dim);
    bias.push_back(total * layout(format).bias);
    largest.push_back(absolute * (layout(format).limit + 1));
    factor.push_back(std::ldexp(float(m), -r)), offset.push_back(float(o));
    if (this->m.size() % group == 0) lowest.push_back(INT8_MIN), highest.push_back(INT8_MAX);
    bound_exponents(largest.back(), m, r, o);
    this->m.push_back(m), this->r.push_back(r), this->o.push_back(o);
}

// A logit is at most largest·m >> (r + e), below 2^23 where the product has no more than 23 + r + e bits. Numbers of 24
// bits and shifts from 0 to 32 are what the instruction sets rely on.
void Query::bound_exponents(int32_t largest, int32_t m, int32_t r, int32_t o) {
    int bits = 0;
    while (int64_t(largest) * m >> bits > 0) bits++;
    const bool sane = m >= 0 && m < 1 << 24 && largest < 1 << 24 && r >= 0 && r < 64 && o >= -(1 << 23) && o <= 1 << 23;
    lowest.back() = int8_t(sane ? std::max<int>(lowest.back(), std::max(bits - 23, 0) - r) : INT8_MAX);
    highest.back() = int8_t(std::min<int>(highest.back(), 32 - std::clamp(r, 0, 63)));
}

// Where a token's first step of head 0 is, and from there on its steps.
static uint8_t* place_of(uint8_t* tiles, size_t token, size_t group_bytes, int step_bytes) {
    return tiles + token / kGroup * group_bytes + token % kGroup * (step_bytes / kGroup);
}

static void pack_int8(const int8_t* key, int dim, uint8_t* to) {
    for (int d = 0; d < dim; d += 4, to += 64) {
        uint8_t step[4] = {128, 128, 128, 128};
        for (int i = 0; i < std::min(4, dim - d); i++) step[i] = uint8_t(key[d + i] + 128);
        std::memcpy(to, step, sizeof step);
    }
}

static void pack_int4(const int8_t* key, int dim, uint8_t* to) {
    auto nibble = [&](int d) { return d < dim ? uint8_t(key[d] + 8) & 15 : 8; };
    for (int d = 0; d < dim; d += 8, to += 64)
        for (int i = 0; i < 4; i++) to[i] = uint8_t(nibble(d + i) | nibble(d + 4 + i) << 4);
}

void pack_keys(KeyFormat format, const int8_t* keys, size_t tokens, int heads, int dim, uint8_t* tiles, size_t first) {
    const size_t head = head_bytes(dim, format);
    for (size_t t = 0; t < tokens; t++) {
        uint8_t* to = place_of(tiles, first + t, heads * head, layout(format).bytes);
        for (int h = 0; h < heads; h++, keys += dim, to += head)
            format == KeyFormat::int8 ? pack_int8(keys, dim, to) : pack_int4(keys, dim, to);
    }
}

void pack_keys(const uint16_t* keys, size_t tokens, int heads, int dim, uint8_t* tiles, size_t first) {
    const size_t head = head_bytes(dim, KeyFormat::fp16);
    for (size_t t = 0; t < tokens; t++) {
        uint8_t* to = place_of(tiles, first + t, heads * head, layout(KeyFormat::fp16).bytes);
        for (int i = 0; i < heads * dim; i++, to += layout(KeyFormat::fp16).bytes)
            std::memcpy(to, keys++, sizeof *keys);
    }
}

bool pack_with(KeyFormat format, const float* key, int heads, int dim, const int8_t* exponents, int limit,
               uint8_t* tiles, size_t place) {
    std::vector<Half> halves(size_t(heads) * dim);  // what the kernel would read
    std::transform(key, key + halves.size(), halves.begin(), [](float each) { return Half(each); });
    std::vector<int8_t> integers(halves.size());
    for (int h = 0; h < heads; h++) {
        float largest = 0;
        for (int i = h * dim; i < (h + 1) * dim; i++) {
            const float half = float(halves[i]);
            if (!std::isfinite(half)) return false;
            largest = std::max(largest, std::fabs(half));
            const float scaled = std::nearbyint(std::ldexp(half, exponents[h]));
            integers[i] = int8_t(std::clamp(scaled, float(-limit), float(limit)));
        }
        int exponent;
        std::frexp(float(limit) / std::max(largest, 1e-30f), &exponent);
        if (std::clamp(exponent - 1, -16, 15) < exponents[h]) return false;
    }
    if (format == KeyFormat::fp16)
        pack_keys(reinterpret_cast<const uint16_t*>(halves.data()), 1, heads, dim, tiles, place);
    else
        pack_keys(format, integers.data(), 1, heads, dim, tiles, place);
    return true;
}

}  // namespace hillinfer
