#include "huge_pages.h"

#ifdef __linux__
#include <sys/mman.h>
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; older ones refuse it, and the first page stays as it is
#endif
#endif

namespace hillinfer {

void in_huge_pages([[maybe_unused]] char* memory, [[maybe_unused]] size_t size) {
#ifdef __linux__
    madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
    madvise(memory, kHugePage, MADV_COLLAPSE);  // takes up to 5 ms, so only where a page cannot begin as a huge one
#endif
}

}  // namespace hillinfer
