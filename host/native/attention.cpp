#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hillinfer {

static constexpr size_t kShared = 256 << 10;  // bytes of rows that are worth a second thread
static constexpr size_t kRowsPerSlice = 128;   // short enough to share out evenly
static constexpr int kDimsPerUnit = 32;        // of a head's values, in what threads share out
static constexpr size_t kBlockBytes = 32 << 10;     // bytes of rows that all heads go over before the next ones

static constexpr float kNone = -std::numeric_limits<float>::infinity();

// One slice by the caller, or many by the threads of a pool.
template <typename F>
static void in_slices(ThreadPool* pool, size_t slices, F&& f) {
    if (pool) pool->run(slices, f);
    else
        for (size_t slice = 0; slice < slices; slice++) f(slice);
}

Attention::Attention(const RowShape& shape, std::vector<float> query, size_t count, ThreadPool* pool)
    : shape(shape),
      count(count),
      pool_(pool && pool->threads() > 1 ? pool : nullptr),
      query_(std::move(query)),
      rows_(count),
      logits_(size_t(shape.heads) * shape.group * count, kNone) {}

// Waking a thread has to be worth it.
ThreadPool* Attention::pool(size_t rows) const { return rows * shape.row_bytes >= kShared ? pool_ : nullptr; }

// Rows that all heads go over together: what lies side by side in memory is read side by side.
static size_t rows_at_once(const RowShape& shape) {
    return std::max<size_t>(8, kBlockBytes / std::max<size_t>(1, key_bytes(shape)));
}

// Of heads first_head … last_head − 1 with rows[n]: query q's begin at logits[(q − first)·stride].
void Attention::logits(const char* const* rows, size_t n, int first_head, int last_head, float* logits,
                       size_t stride) {
    ThreadPool* shared = pool(n);
    const size_t size = shared ? kRowsPerSlice : n, block = rows_at_once(shape);
    in_slices(shared, (n + size - 1) / size, [&](size_t slice) {
        const size_t end = std::min(n, (slice + 1) * size);
        for (size_t begin = slice * size; begin < end; begin += block)
            for (int head = first_head; head < last_head; head++)
                variant().logits(shape, head, query_.data() + size_t(head) * shape.group * shape.head_dim, rows + begin,
                                 std::min(block, end - begin), end - begin,
                                 logits + size_t(head - first_head) * shape.group * stride + begin, stride);
    });
}

// Values of rows[n], for all heads by weights [heads·group][n]: block by block, always in the same order.
void Attention::accumulate(const float* weights, const char* const* rows, size_t n, float* sums) const {
    ThreadPool* shared = pool(n);
    const int each = (shape.head_dim + kDimsPerUnit - 1) / kDimsPerUnit;  // units of a head
    const size_t units = size_t(shape.heads) * each, slices = shared ? std::min<size_t>(units, 4 * shared->threads()) : 1;
    const size_t block = rows_at_once(shape);
    in_slices(shared, slices, [&](size_t slice) {
        const size_t from = units * slice / slices, to = units * (slice + 1) / slices;
        for (size_t begin = 0; begin < n; begin += block)
            for (size_t unit = from; unit < to;) {
                const int head = int(unit / each), first = int(unit % each);
                const int last = int(std::min<size_t>(each, first + (to - unit)));
                variant().accumulate(shape, head, weights + size_t(head) * shape.group * n + begin, n, rows + begin,
                                     std::min(block, n - begin), n - begin,
                                     sums + size_t(head) * shape.group * shape.head_dim, first * kDimsPerUnit,
                                     std::min(shape.head_dim, last * kDimsPerUnit));
                unit += last - first;
            }
    });
}

void Attention::add(const char* const* rows, const int64_t* ranks, size_t n, int only_head) {
    if (!n) return;
    for (size_t i = 0; i < n; i++) rows_[ranks ? ranks[i] : i] = rows[i];
    const int first = only_head < 0 ? 0 : only_head, last = only_head < 0 ? shape.heads : only_head + 1;
    added_ += n * (last - first);
    float* to = logits_.data() + size_t(first) * shape.group * count;
    if (!ranks) return logits(rows, n, first, last, to, count);  // in order: straight to their places
    const size_t queries = size_t(last - first) * shape.group;
    std::vector<float> found(queries * n);
    logits(rows, n, first, last, found.data(), n);
    for (size_t q = 0; q < queries; q++)
        for (size_t i = 0; i < n; i++) to[q * count + ranks[i]] = found[q * n + i];
}

bool Attention::finish(float* out, float* lse) {
    const size_t queries = size_t(shape.heads) * shape.group;
    std::fill(out, out + queries * shape.head_dim, 0.0f);
    if (added_ == count * shape.heads) {  // every head attends to every row
        if (count == 0) return false;
        for (size_t q = 0; q < queries; q++) lse[q] = variant().weigh(logits_.data() + q * count, count);
        accumulate(logits_.data(), rows_.data(), count, out);
        return true;
    }
    for (int head = 0; head < shape.heads; head++)
        if (!finish_head(head, out, lse)) return false;
    return true;
}

// Of a head that attends to some of the rows.
bool Attention::finish_head(int head, float* out, float* lse) const {
    const float* logits = logits_.data() + size_t(head) * shape.group * count;
    std::vector<const char*> rows;
    for (size_t rank = 0; rank < count; rank++)
        if (logits[rank] != kNone) rows.push_back(rows_[rank]);
    const size_t n = rows.size();
    if (n == 0) return false;
    std::vector<float> weights(shape.group * n);
    for (int g = 0; g < shape.group; g++) {
        float* mine = weights.data() + g * n;
        std::copy_if(logits + g * count, logits + (g + 1) * count, mine, [](float x) { return x != kNone; });
        lse[head * shape.group + g] = variant().weigh(mine, n);
    }
    variant().accumulate(shape, head, weights.data(), n, rows.data(), n, n, out + size_t(head) * shape.group * shape.head_dim,
                         0, shape.head_dim);
    return true;
}

}  // namespace hillinfer
