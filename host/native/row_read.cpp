#include "row_read.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crc32c.h"

namespace hillinfer {

namespace {

constexpr uint32_t kTries = 100;  // of a request that brings nothing new

}  // namespace

RowRead::RowRead(const RowFile& from, int64_t base, std::vector<int64_t> rows, std::vector<uint32_t> sums, uint8_t* to,
                 int64_t gap, int64_t longest)
    : file(from), base(base), positions(std::move(rows)), checksums(std::move(sums)), out(to) {
    const int64_t apart = 1 + gap / file.row_bytes;
    const int64_t most = std::max<int64_t>(1, (longest - 2 * file.alignment) / file.row_bytes);
    for (size_t i = 0; i < positions.size();) {
        Window window{};
        window.first = i;
        const int64_t first = positions[i++];
        while (i < positions.size() && positions[i] - positions[i - 1] <= apart && positions[i] - first < most) i++;
        window.stop = i;
        window.offset = (base + first * file.row_bytes) / file.alignment * file.alignment;
        window.needed = uint32_t(base + (positions[i - 1] + 1) * file.row_bytes - window.offset);
        window.length = uint32_t((window.needed + file.alignment - 1) / file.alignment * file.alignment);
        windows.push_back(window);
    }
    left = windows.size();
    arrived.reserve(positions.size());
}

bool RowRead::goes_on(Window& window, int32_t result) const {
    if (result == -EINTR || result == -EAGAIN) return ++window.tries < kTries;
    if (result <= 0 || window.got + result >= window.needed) return false;
    const uint32_t whole = uint32_t((window.got + result) / file.alignment * file.alignment);
    if (whole == window.got && ++window.tries == kTries) return false;
    window.got = whole;
    return true;
}

void RowRead::land(const Window& window, const uint8_t* memory, int32_t result) {
    if (result < 0) return fail(window, -result);
    if (window.got + result < window.needed) return fail(window, kTooShort);
    for (size_t rank = window.first; rank < window.stop; rank++) {
        const uint8_t* row = memory + base + positions[rank] * file.row_bytes - window.offset;
        uint8_t* to = out + rank * file.row_bytes;
        std::memcpy(to, row, file.row_bytes);
        if (checksum(to, file.row_bytes) == checksums[rank]) arrived.push_back(int64_t(rank));
        else bad.push_back(positions[rank]);
    }
}

void RowRead::fail(const Window& window, int why) {
    if (error) return;
    error = why;
    failed_first = positions[window.first], failed_last = positions[window.stop - 1];
}

}  // namespace hillinfer
