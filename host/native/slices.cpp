#include "slices.h"

#include <algorithm>
#include <atomic>

namespace hillinfer {

constexpr size_t kSliceBytes = 256 << 10;  // tens of microseconds: little beside them to claim one, little to wait for

void score_tiles(ThreadPool& pool, const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles,
                 int16_t* scores) {
    const size_t bytes = query.tile_bytes(), each = std::max<size_t>(1, kSliceBytes / bytes);
    const Variant& used = variant();
    pool.run((tiles + each - 1) / each, [&](size_t slice) {
        const size_t first = slice * each, count = std::min(each, tiles - first);
        used.score(query, keys + first * bytes, exponents + first * query.heads, count, scores + first * kTile);
    });
}

uint64_t read_words(ThreadPool& pool, const uint8_t* bytes, size_t n, bool parts) {
    std::atomic<uint64_t> total{0};
    const Variant& used = variant();
    pool.run((n + kSliceBytes - 1) / kSliceBytes, [&](size_t slice) {
        const size_t first = slice * kSliceBytes;
        total += used.read_words(bytes + first, std::min(kSliceBytes, n - first), parts);
    });
    return total;
}

}  // namespace hillinfer
