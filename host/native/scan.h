// Scans of the software device: it stands for the FPGA, and its Score Blocks are those that the kernel writes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "keys.h"

namespace hillinfer {

constexpr size_t kSlotWords = kBlock + 16;  // a Score Block: 64 beats of tuples and a trailer beat

// Consecutive whole tiles of one launch: their keys and exponents [tiles][heads], in memory that outlives it.
struct Run {
    int64_t first, tokens;
    const uint8_t* tiles;
    const int8_t* exponents;
};

// One launch. Blocks are scored by whoever claims them first: the scanning thread, or a caller who waits for them.
class Launch {
  public:
    Launch(Query query, std::vector<Run> runs, uint32_t tag, int min_score);

    size_t blocks() const { return blocks_.size(); }
    size_t bytes() const { return bytes_; }  // of keys

    // Work on the launch until the block is there, or wait up to `seconds` for who works on it. False: not there yet.
    bool wait(size_t block, double seconds);
    void work();                             // until every block is claimed
    bool ended(size_t block);                // it is there, or never will be
    bool is_done(size_t block) { return blocks_[block].done.load(std::memory_order_acquire); }
    void cancel();

    // The block as the kernel would write it (kernel.md, "ABI"), kSlotWords words.
    void write_slot(size_t block, uint32_t* slot) const;
    // Scores of all tokens at their positions; every block must be there.
    void copy_to(int16_t* scores) const;
    int64_t end() const;  // behind the last token of any run

    double started() const { return started_; }  // seconds of the steady clock
    double ended_at() const { return ended_; }

  private:
    struct Block {
        size_t run, index, of;  // which of the run's blocks
        size_t tile, tiles;     // of the run
        int16_t* scores;
        std::atomic<bool> done{false};
    };
    bool work_one();

    Query query_;
    std::vector<Run> runs_;
    uint32_t tag_;
    int min_score_;
    size_t bytes_ = 0;
    std::vector<int16_t> scores_;
    std::deque<Block> blocks_;
    std::atomic<size_t> next_{0};
    std::atomic<bool> cancelled_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<double> started_{0};
    std::atomic<double> ended_{0};
};

// Works through long launches in the order they were submitted; to short ones whoever waits for them sees alone, for
// waking a thread takes as long as scanning them.
class ScanThread {
  public:
    ScanThread();
    ~ScanThread();
    void submit(std::shared_ptr<Launch> launch);
    void close();

  private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Launch>> queue_;
    std::weak_ptr<Launch> current_;
    bool closing_ = false;
    std::thread thread_;
};

}  // namespace hillinfer
