// Attention over rows where they lie, in float32 whatever the rows' type. Included once per instruction set.
// Vectors are the compiler's own (GCC, Clang): one source for every width.

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

using hillinfer::Element;
using hillinfer::RowShape;

constexpr int kLanes = 16;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef uint16_t Halves __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// The same lanes, held otherwise.
template <typename To, typename From>
inline To as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// A register's worth of the 16 lanes. GCC keeps vectors wider than a register in memory, every step of a loop: on AVX2 that
// was four times as slow.
#if defined(__AVX512F__)
constexpr int kPart = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kPart = 8, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kPart = 4, kRegisters = 32;
#else
constexpr int kPart = 4, kRegisters = 16;
#endif
constexpr int kParts = kLanes / kPart;
typedef float Part __attribute__((vector_size(kPart * sizeof(float))));
typedef int32_t IntPart __attribute__((vector_size(kPart * sizeof(int32_t))));
typedef uint16_t HalfPart __attribute__((vector_size(kPart * sizeof(uint16_t))));

// 16 lanes, register by register.
struct Wide {
    Part part[kParts];
};

inline Part part_of(const void* from) {
    Part part;
    std::memcpy(&part, from, sizeof part);
    return part;
}

// float16 in float32, exactly.
inline Part widen(HalfPart narrow) {
#if defined(__AVX512F__)
    return Part(_mm512_cvtph_ps(__m256i(narrow)));
#elif defined(__F16C__)
    return Part(_mm256_cvtph_ps(__m128i(narrow)));
#else  // shift into place, then scale the exponent; infinities and NaN keep theirs
    const IntPart bits = __builtin_convertvector(narrow, IntPart);
    const Part magnitude = Part((bits & 0x7fff) << 13) * 0x1p112f;
    const IntPart special = (bits & 0x7c00) == 0x7c00;
    return Part(IntPart(magnitude) | (special & 0x7f800000) | (bits & 0x8000) << 16);
#endif
}

constexpr size_t size_of(Element e) { return e == Element::float32 ? 4 : 2; }

template <Element E>
inline Wide load(const char* from) {
    Wide wide;
#pragma GCC unroll 4
    for (int p = 0; p < kParts; p++, from += kPart * size_of(E)) {
        if constexpr (E == Element::float32) {
            wide.part[p] = part_of(from);
        } else {
            HalfPart narrow;
            std::memcpy(&narrow, from, sizeof narrow);
            if constexpr (E == Element::bfloat16) wide.part[p] = Part(__builtin_convertvector(narrow, IntPart) << 16);
            else wide.part[p] = widen(narrow);
        }
    }
    return wide;
}

inline void store(char* to, const Wide& wide) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; p++) std::memcpy(to + p * sizeof(Part), &wide.part[p], sizeof(Part));
}

template <Element E>
inline float load_one(const char* from) {
    alignas(64) char lane[64] = {};
    std::memcpy(lane, from, E == Element::float32 ? 4 : 2);
    return load<E>(lane).part[0][0];
}

inline void add_products(Wide& sums, const Wide& a, const Wide& b) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; p++) sums.part[p] += a.part[p] * b.part[p];
}

inline void add_products(Wide& sums, const Wide& a, float b) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; p++) sums.part[p] += a.part[p] * b;
}

// Halves onto halves: the same order of additions for every width of registers, and a short one.
inline float sum(const Wide& x) {
    typedef float Four __attribute__((vector_size(16)));
    Four quarters[4];
    std::memcpy(quarters, &x, sizeof x);
    const Four all = (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
    return (all[0] + all[2]) + (all[1] + all[3]);
}

constexpr size_t kAhead = 8;  // rows
constexpr size_t kNear = 512 << 10;  // bytes that stay in a core's own cache until they are used

template <Element E, int G>
void logits_of(const RowShape& shape, int head, const float* query, const char* const* rows, size_t n, size_t known,
               float* logits, size_t stride) {
    const int whole = shape.head_dim / kLanes * kLanes;
    const size_t bytes = shape.head_dim * size_of(E), offset = head * bytes;
    const bool few = known * shape.heads * bytes <= kNear;
    for (size_t i = 0; i < n; i++) {
        const char* key = rows[i] + offset;
        if (i + kAhead < known) {
            const char* later = rows[i + kAhead] + offset;
            for (size_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(later + byte);
            if (few)  // its value too: it is wanted next
                for (size_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(later + shape.heads * bytes + byte, 0, 2);
        }
        Wide sums[G] = {};
        for (int d = 0; d < whole; d += kLanes) {
            const Wide k = load<E>(key + d * size_of(E));
#pragma GCC unroll 4
            for (int g = 0; g < G; g++)
                add_products(sums[g], k, load<Element::float32>((const char*)(query + g * shape.head_dim + d)));
        }
#pragma GCC unroll 4
        for (int g = 0; g < G; g++) {
            float total = sum(sums[g]);
            for (int d = whole; d < shape.head_dim; d++)
                total += load_one<E>(key + d * size_of(E)) * query[g * shape.head_dim + d];
            logits[g * stride + i] = total;
        }
    }
}

// W times 16 dimensions of the values at `offset` bytes of the rows, for G queries.
template <Element E, int G, int W>
void accumulate_wide(const RowShape& shape, const float* weights, size_t stride, const char* const* rows, size_t n,
                     size_t known, float* sums, size_t offset) {
    constexpr size_t bytes = kLanes * size_of(E);
    auto place = [&](int g, int w) { return reinterpret_cast<char*>(sums + g * shape.head_dim + w * kLanes); };
    Wide all[G][W];
#pragma GCC unroll 4
    for (int g = 0; g < G; g++)
#pragma GCC unroll 4
        for (int w = 0; w < W; w++) all[g][w] = load<Element::float32>(place(g, w));
    for (size_t i = 0; i < n; i++) {
        const char* value = rows[i] + offset;
        if (i + kAhead < known) {
            const char* later = rows[i + kAhead] + offset;
            for (size_t byte = 0; byte < W * bytes; byte += 64) __builtin_prefetch(later + byte);
        }
#pragma GCC unroll 4
        for (int w = 0; w < W; w++) {
            const Wide v = load<E>(value + w * bytes);
#pragma GCC unroll 4
            for (int g = 0; g < G; g++) add_products(all[g][w], v, weights[g * stride + i]);
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; g++)
#pragma GCC unroll 4
        for (int w = 0; w < W; w++) store(place(g, w), all[g][w]);
}

template <Element E, int G>
void accumulate_of(const RowShape& shape, int head, const float* weights, size_t stride, const char* const* rows, size_t n,
                   size_t known, float* sums, int first, int last) {
    const size_t offset = (size_t(shape.heads) + head) * shape.head_dim * size_of(E);
    const int whole = last / kLanes * kLanes;
    constexpr int kHeld = kRegisters * 3 / 4 / kParts / G;  // the others hold values and weights
    constexpr int kWide = kHeld >= 4 ? 4 : kHeld >= 2 ? 2 : 1;
    for (int begin = first; begin < whole;) {
        auto run = [&](auto width) {
            constexpr int W = decltype(width)::value;
            accumulate_wide<E, G, W>(shape, weights, stride, rows, n, known, sums + begin, offset + begin * size_of(E));
            begin += W * kLanes;
        };
        const int left = (whole - begin) / kLanes;
        if (left >= kWide) run(std::integral_constant<int, kWide>());
        else if (left >= 2) run(std::integral_constant<int, std::min(2, kWide)>());
        else run(std::integral_constant<int, 1>());
    }
    for (size_t i = 0; i < n; i++)
        for (int d = whole; d < last; d++) {
            const float v = load_one<E>(rows[i] + offset + d * size_of(E));
            for (int g = 0; g < G; g++) sums[g * shape.head_dim + d] += v * weights[g * stride + i];
        }
}

// Calls f<E, G> for the row's element type, up to four queries at a time.
template <typename Call>
void by_element(const RowShape& shape, Call call) {
    auto by_group = [&](auto element) {
        constexpr Element E = decltype(element)::value;
        for (int g = 0; g < shape.group;) {
            const int left = shape.group - g;
            if (left >= 4) call(std::integral_constant<Element, E>(), std::integral_constant<int, 4>(), g), g += 4;
            else if (left == 3) call(std::integral_constant<Element, E>(), std::integral_constant<int, 3>(), g), g += 3;
            else if (left == 2) call(std::integral_constant<Element, E>(), std::integral_constant<int, 2>(), g), g += 2;
            else call(std::integral_constant<Element, E>(), std::integral_constant<int, 1>(), g), g += 1;
        }
    };
    if (shape.element == Element::float32) by_group(std::integral_constant<Element, Element::float32>());
    else if (shape.element == Element::bfloat16) by_group(std::integral_constant<Element, Element::bfloat16>());
    else by_group(std::integral_constant<Element, Element::float16>());
}

void logits(const RowShape& shape, int head, const float* query, const char* const* rows, size_t n, size_t known,
            float* out, size_t stride) {
    by_element(shape, [&](auto element, auto group, int g) {
        logits_of<decltype(element)::value, decltype(group)::value>(
            shape, head, query + size_t(g) * shape.head_dim, rows, n, known, out + g * stride, stride);
    });
}

void accumulate(const RowShape& shape, int head, const float* weights, size_t stride, const char* const* rows, size_t n,
                size_t known, float* sums, int first, int last) {
    by_element(shape, [&](auto element, auto group, int g) {
        accumulate_of<decltype(element)::value, decltype(group)::value>(
            shape, head, weights + g * stride, stride, rows, n, known, sums + size_t(g) * shape.head_dim, first, last);
    });
}

// exp(x) for x ≤ 0: 2^n · p(f), f in ±½·ln 2, relative error below 1e-7 (Cephes' coefficients for expf).
inline Part exp_of(Part x) {
    x = x < -87.0f ? Part{} - 87.0f : x;
    const Part shifted = x * 1.44269504f + 12582912.0f;  // rounds to an integer in the low bits
    const Part whole = shifted - 12582912.0f;
    Part f = x - whole * 0.693359375f;
    f = f + whole * 2.12194440e-4f;
    Part p = f * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * (f * f) + f + 1.0f;
    return Part(IntPart(p) + ((IntPart(shifted) - 0x4b400000) << 23));
}

float largest(const float* from, size_t n) {
    float top = from[0];
    size_t i = 0;
    if (n >= size_t(kLanes)) {
        Wide most = load<Element::float32>(reinterpret_cast<const char*>(from));
        for (i = kLanes; i + kLanes <= n; i += kLanes)
#pragma GCC unroll 4
            for (int p = 0; p < kParts; p++) {
                const Part x = part_of(from + i + p * kPart);
                most.part[p] = x > most.part[p] ? x : most.part[p];
            }
        for (int lane = 0; lane < kLanes; lane++) top = std::max(top, most.part[lane / kPart][lane % kPart]);
    }
    for (; i < n; i++) top = std::max(top, from[i]);
    return top;
}

float weigh(float* logits, size_t n) {
    const float top = largest(logits, n);
    Wide total = {};
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
#pragma GCC unroll 4
        for (int p = 0; p < kParts; p++) {
            float* at = logits + i + p * kPart;
            const Part x = exp_of(part_of(at) - top);
            std::memcpy(at, &x, sizeof x);
            total.part[p] += x;
        }
    float rest = 0;
    for (; i < n; i++) {
        const Part x = exp_of(Part{} + (logits[i] - top));
        logits[i] = x[0];
        rest += x[0];
    }
    const float all = sum(total) + rest;
    for (i = 0; i < n; i++) logits[i] /= all;
    return top + std::log(all);
}

}  // namespace
