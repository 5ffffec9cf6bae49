#include "select.h"

#include <algorithm>

#include "variant.h"

namespace hillinfer {

// Where the last `wanted` of the scores that equal `level` begin.
static size_t newest_of(const int16_t* scores, size_t n, int16_t level, size_t wanted) {
    constexpr size_t kBlock = 1024;
    size_t begin = n;
    while (true) {
        const size_t end = begin;
        begin = end - std::min(end, kBlock);
        const size_t above = level == INT16_MAX ? 0 : variant().count_from(scores + begin, end - begin, level + 1);
        const size_t equal = variant().count_from(scores + begin, end - begin, level) - above;
        if (equal < wanted) {
            wanted -= equal;
            continue;
        }
        size_t at = end;
        while (wanted) wanted -= scores[--at] == level;
        return at;
    }
}

void top(const int16_t* scores, size_t n, size_t count, int64_t* positions) {
    if (count == 0) return;
    // The threshold is the largest value that at least `count` scores reach: found by halving the range of the scores.
    auto [low, high] = variant().range(scores, n);
    size_t reached = n, above = 0;  // scores from `low` on, and beyond `high`
    while (low < high && reached != count) {
        const int16_t middle = int16_t(low + (high - low + 1) / 2);
        const size_t found = variant().count_from(scores, n, middle);
        if (found >= count) low = middle, reached = found;
        else high = int16_t(middle - 1), above = found;
    }
    // Of those at the threshold the newest are taken: until they begin, only what is above it.
    const size_t newest = reached == count ? 0 : newest_of(scores, n, low, count - above);
    size_t found = 0;
    if (newest && low < INT16_MAX) found = variant().collect(scores, 0, newest, int16_t(low + 1), positions, count);
    variant().collect(scores, newest, n, low, positions + found, count - found);
}

void handicap(int16_t* scores, const int32_t* slot_of, size_t n, int by) {
    for (size_t i = 0; i < n; i++) {
        const int32_t less = int32_t(scores[i]) - (slot_of[i] < 0 ? by : 0);
        scores[i] = int16_t(std::max<int32_t>(less, INT16_MIN));
    }
}

}  // namespace hillinfer
