#include "placement.h"

#include <algorithm>
#include <cstring>

#include "keys.h"

namespace hillinfer {

void count_step(uint16_t* counts, size_t n, const int64_t* selected, size_t chosen, int ageing, int hit) {
    for (size_t i = 0; i < n; i++) counts[i] = uint16_t(counts[i] - (counts[i] >> ageing));
    for (size_t i = 0; i < chosen; i++)
        counts[selected[i]] = uint16_t(std::min<int>(counts[selected[i]] + hit, UINT16_MAX));
}

std::vector<int64_t> coldest(const uint16_t* counts, const int64_t* held, size_t n, int64_t pinned_from, size_t most) {
    std::vector<std::pair<uint16_t, int64_t>> ranked;
    ranked.reserve(n);
    for (size_t i = 0; i < n; i++)
        if (held[i] >= 0 && held[i] < pinned_from) ranked.emplace_back(counts[held[i]], held[i]);
    most = std::min(most, ranked.size());
    std::partial_sort(ranked.begin(), ranked.begin() + most, ranked.end());
    std::vector<int64_t> positions(most);
    for (size_t i = 0; i < most; i++) positions[i] = ranked[i].second;
    return positions;
}

void exchange(const Pool& pool, const int64_t* demote, const int64_t* promote, const char* rows, const int64_t* ranks,
              size_t n) {
    for (size_t i = 0; i < n; i++) {
        const int32_t slot = pool.slot_of[demote[i]];
        pool.slot_of[demote[i]] = -1;
        pool.tile_fill[demote[i] / kTile]--;
        pool.slot_of[promote[i]] = slot;
        pool.position_of[slot] = promote[i];
        pool.tile_fill[promote[i] / kTile]++;
        std::memcpy(pool.rows + slot * pool.row_bytes, rows + ranks[i] * pool.row_bytes, pool.row_bytes);
    }
}

}  // namespace hillinfer
