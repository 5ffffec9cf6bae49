// Attention of one new token to selected rows where they lie.
#pragma once

#include "pool.h"
#include "variant.h"

namespace hillinfer {

// Rows are added as they come to hand, each with its rank among the selected; their logits are computed at once. The
// sums are made in order of rank when all are there, so that not one bit of the output depends on where rows were.
class Attention {
  public:
    // query [heads·group][head_dim], already scaled; `count` rows will be added. pool: threads that share long work
    Attention(const RowShape& shape, std::vector<float> query, size_t count, ThreadPool* pool = nullptr);

    // rows[i] has ranks[i] (null: i); it must stay there until `finish`. A row that only some heads attend to is added
    // once for each of them (only_head; −1: all).
    void add(const char* const* rows, const int64_t* ranks, size_t n, int only_head);

    // The weighted mean of the values [heads·group][head_dim], and the log-sum-exp [heads·group].
    // False if a head has no row at all. To be called once: logits become weights.
    bool finish(float* out, float* lse);

    const RowShape shape;
    const size_t count;

  private:
    void logits(const char* const* rows, size_t n, int first_head, int last_head, float* logits, size_t stride);
    void accumulate(const float* weights, const char* const* rows, size_t n, float* sums) const;
    bool finish_head(int head, float* out, float* lse) const;
    ThreadPool* pool(size_t rows) const;

    ThreadPool* pool_;
    std::vector<float> query_;
    std::vector<const char*> rows_;   // [count]
    std::vector<float> logits_;       // [heads·group][count]; −∞: not attended
    size_t added_ = 0;                // rows, summed over heads
};

}  // namespace hillinfer
