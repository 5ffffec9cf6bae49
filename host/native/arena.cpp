#include "arena.h"

#include <sys/mman.h>

#include <iterator>
#include <new>

namespace hillinfer {

namespace {

constexpr size_t kPage = 4096;

size_t pages(size_t nbytes) { return (nbytes + kPage - 1) / kPage * kPage; }

}  // namespace

Arena::Arena(size_t size) : nbytes(pages(size)), free_{{0, pages(size)}} {
    void* memory = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data = static_cast<uint8_t*>(memory);
    madvise(data, nbytes, MADV_DONTFORK);  // the kernel writes to these very pages: a fork must not copy them
}

Arena::~Arena() { munmap(data, nbytes); }

size_t Arena::take(size_t size) {
    size = pages(size);
    for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
        const auto [place, room] = *piece;
        if (room < size) continue;
        free_.erase(piece);
        if (room > size) free_.emplace(place + size, room - size);
        return place;
    }
    return kNone;
}

void Arena::give(size_t place, size_t size) {
    size = pages(size);
    auto behind = free_.lower_bound(place);
    if (behind != free_.end() && behind->first == place + size) size += behind->second, behind = free_.erase(behind);
    if (behind != free_.begin()) {
        auto before = std::prev(behind);
        if (before->first + before->second == place) {
            before->second += size;
            return;
        }
    }
    free_.emplace_hint(behind, place, size);
}

}  // namespace hillinfer
