// Rows of the cold pool, many at once: runs of neighbours are one request each, and all requests fly together.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hillinfer {

// Where rows lie: row p of a sequence at base + p·row_bytes of the file.
struct RowFile {
    int fd;
    int64_t base, row_bytes;
    int64_t alignment;  // of offsets, lengths and addresses: what O_DIRECT asks for (1: any)
    bool direct;
};

// A request: `length` bytes from `offset` on, at `place` of the buffer.
struct Window {
    int64_t offset, length, place;
    int64_t first_row, last_row;  // positions, for messages
};

// Page-aligned memory that requests write to; it outlives them.
struct Buffer {
    explicit Buffer(size_t nbytes);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    uint8_t* data;
    size_t nbytes;
};

// One read of many rows, in flight.
struct RowRead {
    RowFile file;
    std::vector<int64_t> positions, where;  // ascending; of each row, in the buffer
    std::vector<Window> windows;
    std::vector<int64_t> results;  // bytes got by each window, or −errno
    std::shared_ptr<Buffer> buffer;
    size_t left = 0;  // windows not complete yet
    uint64_t number = 0;

    // Cut ascending positions into windows: neighbours, and those a small gap apart, are read together.
    RowRead(const RowFile& file, std::vector<int64_t> positions);

    // Copy the rows out, in order; `bad` gets the positions whose checksum differs from what was written.
    // Returns what is wrong with a request that failed (then nothing is copied), else nothing.
    std::string collect(uint8_t* out, const uint32_t* checksums, std::vector<int64_t>& bad) const;
};

// Starts reads and waits for them; used from one thread. Requests go to Linux AIO where the system has it and the
// file is direct: a batch is one system call and wakes no thread. Otherwise a few threads read.
class RowReader {
  public:
    explicit RowReader(bool use_kernel = true);
    ~RowReader();
    RowReader(const RowReader&) = delete;

    std::shared_ptr<RowRead> start(const RowFile& file, std::vector<int64_t> positions);
    bool finish(RowRead& read);  // false: a signal came first, call again
    void close();
    bool in_kernel() const { return context_ != 0; }

  private:
    bool reap(size_t least);
    void submit_to_kernel(const std::shared_ptr<RowRead>& read);
    void submit_to_threads(const std::shared_ptr<RowRead>& read);
    void work();
    std::shared_ptr<Buffer> take(size_t nbytes);

    uint64_t context_ = 0;  // aio_context_t
    size_t flying_ = 0;
    uint64_t next_ = 0;
    std::map<uint64_t, std::shared_ptr<RowRead>> reads_;  // keeps their buffers while the kernel writes to them
    std::vector<std::shared_ptr<Buffer>> spare_;

    std::mutex mutex_;
    std::condition_variable jobs_, done_;
    std::deque<std::pair<std::shared_ptr<RowRead>, size_t>> queue_;
    std::vector<std::thread> threads_;
    bool closing_ = false;
};

}  // namespace hillinfer
