// What a core can do at best, for benchmarks. Included once per instruction set, after its scoring.

namespace {

#if defined(__AVX512F__)
constexpr size_t kRegister = 64;  // bytes
#elif defined(__AVX2__)
constexpr size_t kRegister = 32;
#else
constexpr size_t kRegister = 16;
#endif

// n a multiple of 64·Streams: that many parts at once, side by side.
template <int Streams>
uint64_t read_parts(const uint8_t* bytes, size_t n) {
    typedef uint64_t Words __attribute__((vector_size(kRegister)));
    constexpr int kLine = 64 / kRegister;
    Words sums[Streams][kLine] = {};
    const size_t part = n / Streams;
    for (size_t i = 0; i < part; i += 64)
#pragma GCC unroll 4
        for (int s = 0; s < Streams; s++)
#pragma GCC unroll 4
            for (int w = 0; w < kLine; w++) {
                Words words;
                std::memcpy(&words, bytes + s * part + i + w * kRegister, sizeof words);
                sums[s][w] += words;
            }
    uint64_t total = 0;
    for (const auto& line : sums)
        for (const Words& words : line)
            for (size_t lane = 0; lane < kRegister / 8; lane++) total += words[lane];
    return total;
}

// The sum of 64-bit words, n a multiple of 64 bytes: reading memory and nothing else, from its begin to its end or in four
// parts at once. Which of them a processor fetches ahead better is its own affair.
uint64_t read_words(const uint8_t* bytes, size_t n, bool parts) {
    if (!parts) return read_parts<1>(bytes, n);
    const size_t whole = n / 256 * 256;
    return read_parts<4>(bytes, whole) + read_parts<1>(bytes + whole, n - whole);
}

// `rounds` times, INT8 keys of 16 tokens and 128 dimensions are multiplied with kQueries queries, all of it in the nearest
// cache. Returns the number of products of a step of the layout (64 bytes) and a query: with AVX-512 an instruction each.
size_t multiply_steps(size_t rounds) {
    constexpr int kDim = 128;
    alignas(64) uint8_t keys[kDim / 4 * 64] = {1};
    alignas(64) int8_t queries[kQueries * kDim] = {1};
    for (size_t round = 0; round < rounds; round++) {
        asm volatile("" : "+m"(keys), "+m"(queries));  // they might have changed: no round is done in advance
        Int8Keys::Sums sums[kQueries] = {};
#pragma GCC unroll 8
        for (int d = 0; d < kDim; d += 4) {
            const Int8Keys::Step step = Int8Keys::load(keys + d * 16, 1);
#pragma GCC unroll 8
            for (int g = 0; g < kQueries; g++) Int8Keys::add(sums[g], step, queries + g * kDim + d);
        }
#pragma GCC unroll 8
        for (int g = 0; g < kQueries; g++) {
            const Dots dots = Int8Keys::dot(sums[g], 0);
            asm volatile("" ::"m"(dots));
        }
    }
    return rounds * (kDim / 4) * kQueries;
}

}  // namespace
