// CRC-32C (Castagnoli; RFC 3720, appendix B.4), with the processor's instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hillinfer {

uint32_t crc32c(const void* data, size_t nbytes);

// Four checksums of interleaved words, folded into one: as good at finding damage, three times as fast.
uint32_t checksum(const void* data, size_t nbytes);

}  // namespace hillinfer
