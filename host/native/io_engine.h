// What reads pieces of files into memory of its own accord: io_uring where the kernel lets us have it, threads elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hillinfer {

// `length` bytes from `offset` on, to memory inside the arena. `file`: what add_file gave, or −1.
struct IoRequest {
    int fd, file;
    uint8_t* to;
    uint32_t length;
    int64_t offset;
    uint32_t tag;
};

struct IoDone {
    uint32_t tag;
    int32_t result;  // bytes got, or −errno
};

// Requests go in from one thread at a time and come back to one thread at a time, which may be another.
class IoEngine {
  public:
    virtual ~IoEngine() = default;
    virtual const char* name() const = 0;

    // Start requests; never more than the depth it was made for are in flight.
    virtual void submit(const IoRequest* requests, size_t count) = 0;

    // Put up to `room` that are done into `done`; waits until `least` are, at most `milliseconds` (0: does not wait).
    // Fewer than `least`: the time is over, or a signal came.
    virtual size_t reap(IoDone* done, size_t room, size_t least, int milliseconds) = 0;

    // Whether the kernel keeps the arena's pages at hand, so that it need not look them up for each request.
    virtual bool fixed_buffers() const { return false; }
    // The same for a file: its number, or −1 where that is not to be had.
    virtual int add_file(int) { return -1; }
    virtual void remove_file(int) {}
};

// Null when the kernel refuses; `why` then says what it said.
std::unique_ptr<IoEngine> open_uring(size_t depth, uint8_t* arena, size_t nbytes, std::string& why);
std::unique_ptr<IoEngine> open_pread_pool(size_t depth);

// An engine whose requests take `delay` seconds longer, and of which every `every`-th (0: none) is told to have ended
// with `result`. For tests of slow and failing disks.
std::unique_ptr<IoEngine> disturb(std::unique_ptr<IoEngine> engine, double delay, size_t every, int32_t result);

}  // namespace hillinfer
