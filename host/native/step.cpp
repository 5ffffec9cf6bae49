#include "step.h"

#include <chrono>

#include "select.h"
#include "slices.h"

namespace hillinfer {

static constexpr size_t kShared = 256 << 10;  // bytes of keys that are worth a second thread

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static std::vector<int16_t> score(const Query& asked, const std::vector<Run>& keys, int64_t length, ThreadPool* pool) {
    std::vector<int16_t> scores((length + kTile - 1) / kTile * kTile);
    for (const Run& run : keys) {
        const size_t tiles = run.tokens / kTile;
        if (pool && tiles * asked.tile_bytes() >= kShared)
            score_tiles(*pool, asked, run.tiles, run.exponents, tiles, scores.data() + run.first);
        else variant().score(asked, run.tiles, run.exponents, tiles, scores.data() + run.first);
    }
    return scores;
}

Step::Step(const RowShape& shape, std::vector<float> query, const Query& asked, const std::vector<Run>& keys,
           const Places& places, size_t count, int handicap, const char* own, ThreadPool* pool)
    : positions(count), attention_(shape, std::move(query), count + 1, pool) {
    std::vector<int16_t> scores = score(asked, keys, places.length, pool);
    scored = now();
    if (handicap) hillinfer::handicap(scores.data(), places.slot_of, size_t(places.stored), handicap);
    top(scores.data(), places.length, count, positions.data());
    locate(places, own);
    selected = now();
    attended = selected;
    if (!cold.empty()) return;
    attention_.add(rows_.data(), nullptr, rows_.size(), -1);
    attended = now();
}

void Step::attend() {
    std::vector<const char*> here;
    std::vector<int64_t> ranks;
    for (size_t rank = 0; rank < rows_.size(); rank++)
        if (rows_[rank]) here.push_back(rows_[rank]), ranks.push_back(int64_t(rank));
    attention_.add(here.data(), ranks.data(), here.size(), -1);
}

void Step::locate(const Places& places, const char* own) {
    const size_t row_bytes = attention_.shape.row_bytes;
    rows_.reserve(positions.size() + 1);
    for (size_t rank = 0; rank < positions.size(); rank++) {
        const int64_t position = positions[rank];
        if (position >= places.stored) {
            rows_.push_back(places.newest + (position - places.stored) * row_bytes);
        } else if (const int32_t slot = places.slot_of[position]; slot >= 0) {
            hot.push_back(slot), hot_ranks.push_back(int64_t(rank));
            rows_.push_back(places.pool + size_t(slot) * row_bytes);
        } else {
            cold.push_back(position), cold_ranks.push_back(int64_t(rank));
            rows_.push_back(nullptr);
        }
    }
    rows_.push_back(own);
}

void Step::finish(const char* cold_rows, float* out, float* lse) {
    if (!cold.empty()) {
        std::vector<const char*> here(cold.size());
        for (size_t i = 0; i < here.size(); i++) here[i] = cold_rows + i * attention_.shape.row_bytes;
        attention_.add(here.data(), cold_ranks.data(), here.size(), -1);
    }
    attention_.finish(out, lse);  // there is always the step's own row
}

}  // namespace hillinfer
