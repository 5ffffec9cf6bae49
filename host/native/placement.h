// The hit-rate table of one stream (see hillinfer.store.placement): counts uint16 per token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hillinfer {

// counts[n] lose 1/2^ageing each; those of the selected tokens gain `hit`, and saturate.
void count_step(uint16_t* counts, size_t n, const int64_t* selected, size_t chosen, int ageing, int hit);

// Up to `most` of the positions held (≥ 0) before `pinned_from`, lowest count first, oldest first among equals.
std::vector<int64_t> coldest(const uint16_t* counts, const int64_t* held, size_t n, int64_t pinned_from, size_t most);

}  // namespace hillinfer
