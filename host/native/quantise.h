// A query of floats as the kernel takes it (kernel.md, "What it computes"): INT8, its scale folded into integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hillinfer {

constexpr int kUnitsPerNat = 256;

// Of [heads·group] queries.
struct Quantised {
    std::vector<int8_t> q8;        // [heads·group][head_dim]
    std::vector<int32_t> m, r, o;  // [heads·group]
};

// query [heads·group][head_dim]; scaling multiplies q·k; normaliser [heads·group] in nats, or null: raw scores, all
// shifted right by the smallest amount that cannot saturate the int16 score with exponents from lowest [heads] on.
Quantised quantise(const float* query, size_t heads, size_t group, size_t head_dim, double scaling,
                   const float* normaliser, const int8_t* lowest, bool sum);

}  // namespace hillinfer
