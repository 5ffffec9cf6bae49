// What finding the highest scores is made of. Included once per instruction set.

namespace {

// How many of scores[n] are at least `least`.
size_t count_from(const int16_t* scores, size_t n, int16_t least) {
    size_t found = 0;
    for (size_t begin = 0; begin < n; begin += 16384) {  // blocks short enough to count in 16 bits per lane
        const size_t end = std::min(n, begin + 16384);
        uint16_t some = 0;
        for (size_t i = begin; i < end; i++) some += scores[i] >= least;
        found += some;
    }
    return found;
}

// The lowest and the highest of scores[n], n > 0.
std::pair<int16_t, int16_t> range(const int16_t* scores, size_t n) {
    int16_t lowest = scores[0], highest = scores[0];
    for (size_t i = 0; i < n; i++) {
        lowest = std::min(lowest, scores[i]);
        highest = std::max(highest, scores[i]);
    }
    return {lowest, highest};
}

// Positions from `begin` to `end` whose scores are at least `least`, in order; returns how many. There is room for them
// and no more.
size_t collect(const int16_t* scores, size_t begin, size_t end, int16_t least, int64_t* positions, size_t room) {
    size_t found = 0, i = begin;
#ifdef __AVX512BW__
    constexpr size_t kAtOnce = 32;
    const __m512i threshold = _mm512_set1_epi16(least);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    // Eight are stored whatever they are, where the next ones go too: a compressing store would be far slower.
    for (; i + kAtOnce <= end && found + kAtOnce <= room; i += kAtOnce) {
        const uint32_t taken = _mm512_cmpge_epi16_mask(_mm512_loadu_si512(scores + i), threshold);
        for (int half = 0; half < 2; half++) {
            const __mmask16 mask = __mmask16(taken >> 16 * half);
            const __m512i offset = _mm512_maskz_compress_epi32(mask, lanes);
            const __m512i base = _mm512_set1_epi64(int64_t(i) + 16 * half);
            const int count = __builtin_popcount(mask);
            const __m512i first = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(offset));
            _mm512_storeu_si512(positions + found, _mm512_add_epi64(base, first));
            if (count > 8) {
                const __m512i second = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(offset, 1));
                _mm512_storeu_si512(positions + found + 8, _mm512_add_epi64(base, second));
            }
            found += count;
        }
    }
#endif
    for (; i < end && found < room; i++) {  // written whether it is taken or not: no branch to guess
        positions[found] = int64_t(i);
        found += scores[i] >= least;
    }
    return found;
}

}  // namespace
