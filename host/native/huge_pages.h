// Large memory in large pages: what is scanned at the speed of memory should not wait for address translation.
#pragma once

#include <cstddef>

namespace hillinfer {

constexpr size_t kHugePage = 2 << 20;

// Of memory[0, size), which begins at a multiple of kHugePage and is in use up to the middle of its first huge page: puts
// that page together, and asks for huge ones where nothing was written yet. Does nothing where the system has none.
void in_huge_pages(char* memory, size_t size);

}  // namespace hillinfer
