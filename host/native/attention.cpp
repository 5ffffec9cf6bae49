#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hillinfer {

static constexpr float kNone = -std::numeric_limits<float>::infinity();

Attention::Attention(const RowShape& shape, std::vector<float> query, size_t count)
    : shape(shape),
      count(count),
      query_(std::move(query)),
      rows_(count),
      logits_(size_t(shape.heads) * shape.group * count, kNone) {}

void Attention::add(const char* const* rows, const int64_t* ranks, size_t n, int only_head) {
    for (size_t i = 0; i < n; i++) rows_[ranks ? ranks[i] : i] = rows[i];
    const int first = only_head < 0 ? 0 : only_head, last = only_head < 0 ? shape.heads : only_head + 1;
    added_ += n * (last - first);
    if (!ranks && n == count) {  // in order, and all of them: straight to their places
        for (int head = first; head < last; head++) {
            const size_t query = size_t(head) * shape.group;
            variant().logits(shape, head, query_.data() + query * shape.head_dim, rows, n, logits_.data() + query * count);
        }
        return;
    }
    std::vector<int64_t> in_order;
    if (!ranks) in_order.resize(n), std::iota(in_order.begin(), in_order.end(), 0), ranks = in_order.data();
    std::vector<float> logits(shape.group * n);
    for (int head = first; head < last; head++) {
        const size_t query = size_t(head) * shape.group;
        variant().logits(shape, head, query_.data() + query * shape.head_dim, rows, n, logits.data());
        for (int g = 0; g < shape.group; g++)
            for (size_t i = 0; i < n; i++) logits_[(query + g) * count + ranks[i]] = logits[g * n + i];
    }
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
        variant().accumulate(shape, head, weights.data(), rows.data(), n, sums);
    }
    return true;
}

}  // namespace hillinfer
