// Top-k of integer scores without sorting them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hillinfer {

// The ascending positions of the `count` highest of scores[n], count ≤ n; among equal scores the newest are taken.
void top(const int16_t* scores, size_t n, size_t count, int64_t* positions);

}  // namespace hillinfer
