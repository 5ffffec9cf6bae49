// The scoring thread of the software device: it stands for the FPGA, and writes Score Blocks as the kernel does.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "keys.h"

namespace hillinfer {

constexpr size_t kSlotWords = kBlock + 16;  // a Score Block: 64 beats of tuples and a trailer beat

// Consecutive whole tiles of one launch: where their keys are in the file, their exponents and checksums.
struct Run {
    int64_t first, tokens;
    int64_t offset;
    std::vector<int8_t> exponents;     // [tiles][heads]
    std::vector<uint32_t> checksums;   // [tiles]
};

// One launch: written by the scoring thread, read by the thread that waits for its blocks.
class Launch {
  public:
    Launch(Query query, int file, std::vector<Run> runs, uint32_t tag, int min_score);

    size_t blocks() const { return blocks_; }
    const uint32_t* slot(size_t block) const { return slots_.data() + block * kSlotWords; }

    // Wait up to `seconds` for a block; true once it is there. What went wrong is in `failure`.
    bool wait(size_t block, double seconds);
    size_t done();  // blocks that are there; none once cancelled
    void cancel();
    std::string failure();  // empty: none
    void run(std::vector<uint8_t>& buffer);  // by the scoring thread
    void fail(std::string why);
    double started = 0, ended = 0;  // seconds of the steady clock, once complete

  private:
    bool emit();
    void write_slot(const int16_t* scores, size_t n, int64_t first, size_t index, size_t of, uint32_t* slot) const;

    Query query_;
    int file_;
    std::vector<Run> runs_;
    uint32_t tag_;
    int min_score_;
    size_t blocks_ = 0;
    std::vector<uint32_t> slots_;
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t done_ = 0;
    bool cancelled_ = false;
    std::string failure_;
};

// Works through launches in the order they were submitted.
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
    bool closing_ = false;
    std::thread thread_;
};

}  // namespace hillinfer
