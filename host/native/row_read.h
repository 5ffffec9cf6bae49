// One read of many rows: cut into requests, and what has come of it so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hillinfer {

// A file of rows. `file`: its number in the engine, or −1; offsets and lengths of reads are multiples of `alignment`.
struct RowFile {
    int fd, file;
    int64_t row_bytes, alignment;
};

// A request for the rows of ranks [first, stop), at `offset` of the file.
struct Window {
    int64_t offset;
    uint32_t length, needed;  // as asked for; up to the end of the last row
    uint32_t got = 0, tries = 0;
    size_t first, stop;
};

// The rows of ascending positions, on their way to `out`. The reader alone changes it, under its lock.
struct RowRead {
    RowFile file;
    int64_t base;  // of row 0 in the file
    std::vector<int64_t> positions;
    std::vector<uint32_t> checksums;  // of each row
    uint8_t* out;                     // null: given up, nothing is written to it any more
    std::vector<Window> windows;
    size_t next = 0, left;         // windows: the first one not started, how many are not over
    std::vector<int64_t> arrived;  // ranks of rows that are in `out`, each one checked, in the order they came
    size_t told = 0;               // how many of them the caller knows of
    std::vector<int64_t> bad;      // positions of rows that are not what was written
    int error = 0;                 // errno of a request that failed, or kTooShort
    int64_t failed_first = 0, failed_last = 0;

    static constexpr int kTooShort = -1;

    // Neighbours are one request, and so are rows not more than `gap` bytes apart, up to `longest` bytes in all.
    RowRead(const RowFile& file, int64_t base, std::vector<int64_t> positions, std::vector<uint32_t> checksums,
            uint8_t* out, int64_t gap, int64_t longest);

    // Whether a request that ended like this goes on: it was interrupted, or came back with a part.
    bool goes_on(Window& window, int32_t result) const;
    // Take in what a request brought to `memory`, or that it failed.
    void land(const Window& window, const uint8_t* memory, int32_t result);
    void fail(const Window& window, int why);
    size_t flying() const { return left - (windows.size() - next); }
};

}  // namespace hillinfer
