#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hillinfer {

static constexpr float kNone = -std::numeric_limits<float>::infinity();

Attention::Attention(const RowShape& shape, std::vector<float> query, size_t count)
    : shape(shape),
      count(count),
      query_(std::move(query)),
      rows_(count),
      logits_(size_t(shape.heads) * shape.group * count, kNone) {}

void Attention::add(const char* rows, const int64_t* index, const int64_t* ranks, size_t n, int only_head) {
    std::vector<const char*> where(n);
    for (size_t i = 0; i < n; i++) where[i] = rows_[ranks[i]] = rows + index[i] * shape.row_bytes;
    std::vector<float> logits(shape.group * n);
    const int first = only_head < 0 ? 0 : only_head, last = only_head < 0 ? shape.heads : only_head + 1;
    for (int head = first; head < last; head++) {
        const size_t query = size_t(head) * shape.group;
        variant().logits(shape, head, query_.data() + query * shape.head_dim, where.data(), n, logits.data());
        for (int g = 0; g < shape.group; g++)
            for (size_t i = 0; i < n; i++) logits_[(query + g) * count + ranks[i]] = logits[g * n + i];
    }
}

bool Attention::finish(float* out, float* lse) const {
    std::vector<const char*> rows;
    std::vector<float> weights;
    for (int head = 0; head < shape.heads; head++) {
        const float* logits = logits_.data() + size_t(head) * shape.group * count;
        rows.clear();
        for (size_t rank = 0; rank < count; rank++)
            if (logits[rank] != kNone) rows.push_back(rows_[rank]);
        const size_t n = rows.size();
        if (n == 0) return false;
        weights.resize(shape.group * n);
        for (int g = 0; g < shape.group; g++) {
            float* mine = weights.data() + g * n;
            std::copy_if(logits + g * count, logits + (g + 1) * count, mine, [](float x) { return x != kNone; });
            const float top = *std::max_element(mine, mine + n);
            const float total = variant().weigh(mine, n, top);
            lse[head * shape.group + g] = top + std::log(total);
            for (size_t i = 0; i < n; i++) mine[i] /= total;
        }
        float* sums = out + size_t(head) * shape.group * shape.head_dim;
        std::fill(sums, sums + size_t(shape.group) * shape.head_dim, 0.0f);
        variant().accumulate(shape, head, weights.data(), rows.data(), n, sums);
    }
    return true;
}

}  // namespace hillinfer
