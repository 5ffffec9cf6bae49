// Work of the scorer that several threads share.
#pragma once

#include "pool.h"
#include "variant.h"

namespace hillinfer {

// As Variant::score, by the pool's threads: the same scores, whatever their number.
void score_tiles(ThreadPool& pool, const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles,
                 int16_t* scores);

// The sum of all 64-bit words of n bytes, a multiple of 64: how fast memory can be read, in order or, of each slice, in
// four parts at once.
uint64_t read_words(ThreadPool& pool, const uint8_t* bytes, size_t n, bool parts);

}  // namespace hillinfer
