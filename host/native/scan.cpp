#include "scan.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "variant.h"

namespace hillinfer {

static constexpr size_t kLong = 4 << 20;  // bytes of keys, some 150 µs of scanning

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Launch::Launch(Query query, std::vector<Run> runs, uint32_t tag, int min_score)
    : query_(std::move(query)), runs_(std::move(runs)), tag_(tag), min_score_(min_score) {
    size_t tokens = 0;
    for (const Run& run : runs_) tokens += run.tokens;
    scores_.resize(tokens);
    bytes_ = tokens / kTile * query_.tile_bytes();
    int16_t* scores = scores_.data();
    for (size_t r = 0; r < runs_.size(); r++) {
        const size_t of = (runs_[r].tokens + kBlock - 1) / kBlock;
        for (size_t index = 0; index < of; index++) {
            Block& block = blocks_.emplace_back();
            block.run = r, block.index = index, block.of = of;
            block.tile = index * (kBlock / kTile);
            block.tiles = std::min<size_t>(kBlock / kTile, runs_[r].tokens / kTile - block.tile);
            block.scores = scores;
            scores += block.tiles * kTile;
        }
    }
}

bool Launch::work_one() {
    if (cancelled_.load(std::memory_order_acquire)) return false;
    const size_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    if (mine >= blocks_.size()) return false;
    if (mine == 0) started_ = now();
    Block& block = blocks_[mine];
    const Run& run = runs_[block.run];
    variant().score(query_, run.tiles + block.tile * query_.tile_bytes(),
                    run.exponents + block.tile * query_.heads, block.tiles, block.scores);
    ended_ = now();
    std::lock_guard lock(mutex_);
    block.done.store(true, std::memory_order_release);
    changed_.notify_all();
    return true;
}

void Launch::work() {
    while (work_one()) {}
}

bool Launch::ended(size_t block) { return is_done(block) || cancelled_; }

bool Launch::wait(size_t block, double seconds) {
    while (!ended(block) && work_one()) {}
    if (ended(block)) return true;
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return ended(block); });
}

void Launch::cancel() {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
}

// 1024 tuples (uint16 offset, int16 score), then the trailer.
void Launch::write_slot(size_t number, uint32_t* slot) const {
    const Block& block = blocks_[number];
    const size_t n = block.tiles * kTile;
    uint32_t* tuple = slot;
    int most = INT16_MIN;
    for (size_t i = 0; i < n; i++) {
        if (block.scores[i] >= min_score_) *tuple++ = uint32_t(uint16_t(block.scores[i])) << 16 | uint32_t(i);
        most = std::max<int>(most, block.scores[i]);
    }
    const uint32_t emitted = uint32_t(tuple - slot);
    const uint32_t first = uint32_t(runs_[block.run].first + block.tile * kTile);
    std::fill(tuple, slot + kBlock, 0xffffffffu);
    const uint32_t trailer[16] = {0x31534b51, tag_, first, uint32_t(n), emitted, uint32_t(most), 0,
                                  uint32_t(block.index), uint32_t(block.of), 0, 0, 0, 0, 0, 0, ~tag_};
    std::memcpy(slot + kBlock, trailer, sizeof trailer);
}

void Launch::copy_to(int16_t* scores) const {
    const int16_t* from = scores_.data();
    for (const Run& run : runs_) {
        std::memcpy(scores + run.first, from, run.tokens * sizeof *from);
        from += run.tokens;
    }
}

int64_t Launch::end() const {
    int64_t last = 0;
    for (const Run& run : runs_) last = std::max(last, run.first + run.tokens);
    return last;
}

ScanThread::ScanThread() : thread_([this] { work(); }) {}

ScanThread::~ScanThread() { close(); }

void ScanThread::submit(std::shared_ptr<Launch> launch) {
    if (launch->bytes() < kLong) return;
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(launch));
    changed_.notify_one();
}

void ScanThread::close() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
        if (auto launch = current_.lock()) launch->cancel();
        for (auto& launch : queue_) launch->cancel();
        queue_.clear();
        changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

void ScanThread::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        std::shared_ptr<Launch> launch = std::move(queue_.front());
        queue_.pop_front();
        current_ = launch;
        lock.unlock();
        launch->work();
        launch.reset();  // by this thread only if nobody else has it
        lock.lock();
        current_.reset();
    }
}

}  // namespace hillinfer
