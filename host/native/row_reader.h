// Rows of the cold pool, many at once: a bounded number of requests in flight, rows handed over as they arrive.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "arena.h"
#include "io_engine.h"
#include "row_read.h"

namespace hillinfer {

// engine         "io_uring", "pool", or "auto": io_uring where the kernel gives it
// depth          requests in flight, at most
// arena_bytes    memory of all requests in flight; more wait until there is room
// request_bytes  of one request, at most
// gap_bytes      read over a gap this small rather than issue another request
struct ReaderSettings {
    std::string engine;
    size_t depth, arena_bytes, request_bytes;
    int64_t gap_bytes;
};

// Requests land in memory of the reader's own and are copied out and checked from there, so a read that is given up
// leaves nothing that could still be written to. Calls may come from several threads. A read of many requests is started
// and taken in by a thread of the reader's own, while the caller does something else; of one with few, waiting requests
// go out when any call takes in results. Whoever waits does that thread's work while it does not run.
class RowReader {
  public:
    explicit RowReader(const ReaderSettings& settings);  // std::invalid_argument: there is no such engine here
    ~RowReader();
    RowReader(const RowReader&) = delete;

    int add_file(int fd);
    void remove_file(int file);

    // `out` has room for all rows and stays until the read is over or given up.
    std::shared_ptr<RowRead> start(const RowFile& file, int64_t base, std::vector<int64_t> positions,
                                   std::vector<uint32_t> checksums, uint8_t* out);
    // True when rows have arrived that `take` has not given yet, or the read is over; false: call again (a signal).
    bool ready(RowRead& read);
    // Ranks of the rows that arrived since the last call.
    std::vector<int64_t> take(RowRead& read);
    bool finish(RowRead& read);  // true: over; false: call again (a signal)
    void give_up(RowRead& read);
    void pump();
    void close();  // waits for what is in flight
    void disturb(double delay, size_t every, int32_t result);

    const char* engine() const { return engine_ ? engine_->name() : "closed"; }
    bool fixed_buffers() const { return engine_ && engine_->fixed_buffers(); }
    const std::string& refused() const { return refused_; }
    const ReaderSettings settings;

  private:
    struct Slot {
        std::shared_ptr<RowRead> read;  // null: free
        size_t window, place;  // of the read; in the arena
    };

    IoRequest request(uint32_t slot) const;
    void fill(size_t most);
    bool gather(std::unique_lock<std::mutex>& lock, size_t least, bool wait);
    bool flying() const { return free_.size() < slots_.size(); }
    void hire();
    void attend();
    void dismiss();
    void complete(const IoDone& done);
    void forget(RowRead& read);

    Arena arena_;
    std::unique_ptr<IoEngine> engine_;  // behind the arena: it ends first
    std::string refused_;
    std::mutex mutex_;
    std::condition_variable gathered_;
    bool gathering_ = false;  // a thread waits for the engine, for all
    std::vector<Slot> slots_;
    std::vector<uint32_t> free_;
    std::deque<std::shared_ptr<RowRead>> queue_;  // reads with windows that are not started
    std::vector<IoRequest> batch_;
    std::vector<IoDone> done_;

    std::unique_ptr<std::thread> attendant_;  // null: there was no long read yet
    int64_t process_;                         // whose thread it is
    std::condition_variable wanted_;
    bool long_ = false, closing_ = false;     // the attendant has work; is to end
    std::exception_ptr broken_;               // what the engine threw at it: nothing comes any more
};

}  // namespace hillinfer
