// The hit-rate table of one stream (see hillinfer.store.placement), counts uint16 per token; and moving by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hillinfer {

// counts[n] lose 1/2^ageing each; those of the selected tokens gain `hit`, and saturate.
void count_step(uint16_t* counts, size_t n, const int64_t* selected, size_t chosen, int ageing, int hit);

// Up to `most` of the positions held (≥ 0) before `pinned_from`, lowest count first, oldest first among equals.
std::vector<int64_t> coldest(const uint16_t* counts, const int64_t* held, size_t n, int64_t pinned_from, size_t most);

// The hot pool's tables and rows (see hillinfer.store.hot_pool).
struct Pool {
    char* rows;
    size_t row_bytes;
    int32_t* slot_of;      // [tokens]
    int64_t* position_of;  // [slots]
    int16_t* tile_fill;    // [tiles]
};

// Token demote[i] leaves the pool and promote[i] takes its slot, with row ranks[i] of `rows`.
void exchange(const Pool& pool, const int64_t* demote, const int64_t* promote, const char* rows, const int64_t* ranks,
              size_t n);

}  // namespace hillinfer
