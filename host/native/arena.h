// Memory that requests write to, handed out in whole pages: as much as may be in flight, in one piece that the kernel
// can keep at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace hillinfer {

class Arena {
  public:
    static constexpr size_t kNone = size_t(-1);

    explicit Arena(size_t nbytes);
    ~Arena();
    Arena(const Arena&) = delete;

    size_t take(size_t nbytes);  // a place, or kNone while there is no room in one piece
    void give(size_t place, size_t nbytes);

    uint8_t* data;
    const size_t nbytes;

  private:
    std::map<size_t, size_t> free_;  // bytes that are free from a place on; no two pieces touch
};

}  // namespace hillinfer
