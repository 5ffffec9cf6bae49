// One decode step of one stream whose scoring keys are all in memory: score, select and attend in one go.
#pragma once

#include "attention.h"
#include "scan.h"

namespace hillinfer {

// Where rows are: tokens below `stored` in a pool by slot (−1: in the cold pool only), those above in order.
struct Places {
    int64_t length, stored;
    const int32_t* slot_of;
    const char* pool;
    const char* newest;
};

class Step {
  public:
    // query [heads·group][head_dim], scaled; keys of all tokens. Selects the `count` tokens of the highest scores, of
    // which tokens in the cold pool lose `handicap`; if all of them are in memory, attends to them and to the step's own
    // row.
    Step(const RowShape& shape, std::vector<float> query, const Query& asked, const std::vector<Run>& keys,
         const Places& places, size_t count, int handicap, const char* own, ThreadPool* pool = nullptr);

    // Attend to what is in memory, where some rows are not.
    void attend();

    // Attend to the cold rows, in order of position, and sum up: [heads·group][head_dim] and log-sum-exp [heads·group].
    void finish(const char* cold_rows, float* out, float* lse);

    const RowShape& shape() const { return attention_.shape; }

    std::vector<int64_t> positions;           // selected, ascending
    std::vector<int64_t> hot, hot_ranks;      // slots of those in the pool; which of the selected they are
    std::vector<int64_t> cold, cold_ranks;    // positions of those in the cold pool; which of the selected they are
    double scored = 0, selected = 0, attended = 0;  // when these were done, seconds of the steady clock

  private:
    void locate(const Places& places, const char* own);

    Attention attention_;
    std::vector<const char*> rows_;  // by rank, null where it is still to be read
};

}  // namespace hillinfer
