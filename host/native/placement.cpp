#include "placement.h"

#include <algorithm>

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

}  // namespace hillinfer
