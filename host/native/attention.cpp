#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hillinfer {

static constexpr size_t kShared = 256 << 10;   // bytes of rows that are worth a second thread
static constexpr size_t kRowsPerSlice = 128;  // short enough to share out evenly
static constexpr int kDimsPerSlice = 32;

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

// Of heads first_head … last_head − 1 with rows[n]: query q's begin at logits[(q − first)·stride].
void Attention::logits(const char* const* rows, size_t n, int first_head, int last_head, float* logits,
                       size_t stride) {
    ThreadPool* shared = pool(n);
    const size_t size = shared ? kRowsPerSlice : n;
    in_slices(shared, (n + size - 1) / size, [&](size_t slice) {
        const size_t begin = slice * size, some = std::min(size, n - begin);
        for (int head = first_head; head < last_head; head++)
            variant().logits(shape, head, query_.data() + size_t(head) * shape.group * shape.head_dim, rows + begin, some,
                             logits + size_t(head - first_head) * shape.group * stride + begin, stride);
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

bool Attention::finish(float* out, float* lse) const {
    std::vector<const char*> rows;
    std::vector<float> weights;
    const bool whole = added_ == count * shape.heads;  // every head attends to every row
    if (whole) rows = rows_;
    for (int head = 0; head < shape.heads; head++) {
        const float* logits = logits_.data() + size_t(head) * shape.group * count;
        if (!whole) {
            rows.clear();
            for (size_t rank = 0; rank < count; rank++)
                if (logits[rank] != kNone) rows.push_back(rows_[rank]);
        }
        const size_t n = rows.size();
        if (n == 0) return false;
        weights.assign(logits, logits + (whole ? shape.group * n : 0));
        weights.resize(shape.group * n);
        for (int g = 0; g < shape.group; g++) {
            float* mine = weights.data() + g * n;
            if (!whole)
                std::copy_if(logits + g * count, logits + (g + 1) * count, mine, [](float x) { return x != kNone; });
            lse[head * shape.group + g] = variant().weigh(mine, n);
        }
        float* sums = out + size_t(head) * shape.group * shape.head_dim;
        std::fill(sums, sums + size_t(shape.group) * shape.head_dim, 0.0f);
        ThreadPool* shared = pool(n / shape.heads);
        const int size = shared ? kDimsPerSlice : shape.head_dim;
        in_slices(shared, (shape.head_dim + size - 1) / size, [&](size_t slice) {
            const int first = int(slice) * size, last = std::min(shape.head_dim, first + size);
            variant().accumulate(shape, head, weights.data(), rows.data(), n, sums, first, last);
        });
    }
    return true;
}

}  // namespace hillinfer
