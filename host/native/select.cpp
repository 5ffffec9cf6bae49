#include "select.h"

#include "variant.h"

namespace hillinfer {

void top(const int16_t* scores, size_t n, size_t count, int64_t* positions) {
    if (count == 0) return;
    // The threshold is the largest value that at least `count` scores reach: found by halving the range, 16 counts.
    int low = INT16_MIN, high = INT16_MAX;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (variant().count_from(scores, n, middle) >= count) low = middle;
        else high = middle - 1;
    }
    const size_t above = low == INT16_MAX ? 0 : variant().count_from(scores, n, low + 1);
    size_t level = variant().count_from(scores, n, low) - above;
    const size_t wanted = count - above;  // of those at the threshold: the newest
    for (size_t i = 0; i < n; i++) {
        const bool equal = scores[i] == low;
        const bool taken = scores[i] > low || (equal && level <= wanted);
        level -= equal;
        if (taken) *positions++ = int64_t(i);
    }
}

}  // namespace hillinfer
