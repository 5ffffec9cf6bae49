// Top-k of integer scores without sorting them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hillinfer {

// The ascending positions of the `count` highest of scores[n], count ≤ n; among equal scores the newest are taken.
void top(const int16_t* scores, size_t n, size_t count, int64_t* positions);

// Those of scores[n] whose row is in no slot lose `by` (0 … 32767), as far as 16 bits go.
void handicap(int16_t* scores, const int32_t* slot_of, size_t n, int by);

}  // namespace hillinfer
