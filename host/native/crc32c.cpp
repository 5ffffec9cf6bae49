#include "crc32c.h"

#include <array>
#include <cstring>

#ifdef HILLINFER_X86
#include <nmmintrin.h>
#endif

namespace hillinfer {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
    std::array<std::array<uint32_t, 256>, 8> tables{};
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
        tables[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
    return tables;
}

constexpr auto kTables = make_tables();

uint32_t word_by_table(uint32_t crc, uint64_t word) {
    word ^= crc;
    uint32_t next = 0;
    for (int k = 0; k < 8; k++) next ^= kTables[7 - k][word >> 8 * k & 255];
    return next;
}

uint32_t byte_by_table(uint32_t crc, uint8_t byte) { return crc >> 8 ^ kTables[0][(crc ^ byte) & 255]; }

uint64_t word_at(const uint8_t* from) {
    uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

template <typename Word, typename Byte>
inline uint32_t fold(const uint8_t* data, size_t nbytes, Word word, Byte byte) {
    uint32_t crc = ~0u;
    for (; nbytes >= 8; data += 8, nbytes -= 8) crc = word(crc, word_at(data));
    for (; nbytes; nbytes--) crc = byte(crc, *data++);
    return ~crc;
}

template <typename Word, typename Byte>
inline uint32_t fold4(const uint8_t* data, size_t nbytes, Word word, Byte byte) {
    uint32_t lane[4] = {~0u, ~1u, ~2u, ~3u};
    for (; nbytes >= 32; data += 32, nbytes -= 32)
        for (int k = 0; k < 4; k++) lane[k] = word(lane[k], word_at(data + 8 * k));
    uint32_t crc = ~0u;
    for (uint32_t each : lane) crc = word(crc, each);
    for (; nbytes; nbytes--) crc = byte(crc, *data++);
    return ~crc;
}

#ifdef HILLINFER_X86
__attribute__((target("sse4.2"))) inline uint32_t word_by_sse42(uint32_t crc, uint64_t word) {
    return uint32_t(_mm_crc32_u64(crc, word));
}

__attribute__((target("sse4.2"))) inline uint32_t byte_by_sse42(uint32_t crc, uint8_t byte) {
    return _mm_crc32_u8(crc, byte);
}

__attribute__((target("sse4.2"), flatten)) uint32_t crc32c_sse42(const uint8_t* data, size_t nbytes) {
    return fold(data, nbytes, word_by_sse42, byte_by_sse42);
}

__attribute__((target("sse4.2"), flatten)) uint32_t checksum_sse42(const uint8_t* data, size_t nbytes) {
    return fold4(data, nbytes, word_by_sse42, byte_by_sse42);
}

bool has_sse42() {
    static const bool has = __builtin_cpu_supports("sse4.2");
    return has;
}
#endif

}  // namespace

uint32_t crc32c(const void* data, size_t nbytes) {
#ifdef HILLINFER_X86
    if (has_sse42()) return crc32c_sse42(static_cast<const uint8_t*>(data), nbytes);
#endif
    return fold(static_cast<const uint8_t*>(data), nbytes, word_by_table, byte_by_table);
}

uint32_t checksum(const void* data, size_t nbytes) {
#ifdef HILLINFER_X86
    if (has_sse42()) return checksum_sse42(static_cast<const uint8_t*>(data), nbytes);
#endif
    return fold4(static_cast<const uint8_t*>(data), nbytes, word_by_table, byte_by_table);
}

}  // namespace hillinfer
