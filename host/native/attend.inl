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

// float16 in float32, exactly.
inline Floats widen(Halves narrow) {
#if defined(__AVX512F__)
    return Floats(_mm512_cvtph_ps(__m256i(narrow)));
#elif defined(__F16C__)
    __m128i half[2];
    std::memcpy(half, &narrow, sizeof half);
    const __m256 wide[2] = {_mm256_cvtph_ps(half[0]), _mm256_cvtph_ps(half[1])};
    Floats all;
    std::memcpy(&all, wide, sizeof all);
    return all;
#else  // shift into place, then scale the exponent; infinities and NaN keep theirs
    const Ints bits = __builtin_convertvector(narrow, Ints);
    const Floats magnitude = Floats((bits & 0x7fff) << 13) * 0x1p112f;
    const Ints special = (bits & 0x7c00) == 0x7c00;
    return Floats(Ints(magnitude) | (special & 0x7f800000) | (bits & 0x8000) << 16);
#endif
}

template <Element E>
inline Floats load(const char* from) {
    if constexpr (E == Element::float32) {
        Floats wide;
        std::memcpy(&wide, from, sizeof wide);
        return wide;
    } else {
        Halves narrow;
        std::memcpy(&narrow, from, sizeof narrow);
        if constexpr (E == Element::bfloat16) return Floats(__builtin_convertvector(narrow, Ints) << 16);
        else return widen(narrow);
    }
}

template <Element E>
inline float load_one(const char* from) {
    alignas(64) char lane[64] = {};
    std::memcpy(lane, from, E == Element::float32 ? 4 : 2);
    return load<E>(lane)[0];
}

constexpr size_t size_of(Element e) { return e == Element::float32 ? 4 : 2; }

// Halves onto halves: the same order of additions for every width of registers, and a short one.
inline float sum(Floats x) {
    typedef float Eight __attribute__((vector_size(32)));
    typedef float Four __attribute__((vector_size(16)));
    Eight halves[2];
    std::memcpy(halves, &x, sizeof x);
    halves[0] += halves[1];
    Four quarters[2];
    std::memcpy(quarters, &halves[0], sizeof quarters);
    quarters[0] += quarters[1];
    return (quarters[0][0] + quarters[0][2]) + (quarters[0][1] + quarters[0][3]);
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
        Floats sums[G] = {};
        for (int d = 0; d < whole; d += kLanes) {
            const Floats k = load<E>(key + d * size_of(E));
            for (int g = 0; g < G; g++) sums[g] += k * load<Element::float32>((const char*)(query + g * shape.head_dim + d));
        }
        for (int g = 0; g < G; g++) {
            float total = sum(sums[g]);
            for (int d = whole; d < shape.head_dim; d++)
                total += load_one<E>(key + d * size_of(E)) * query[g * shape.head_dim + d];
            logits[g * stride + i] = total;
        }
    }
}

template <Element E, int G>
void accumulate_of(const RowShape& shape, int head, const float* weights, size_t stride, const char* const* rows, size_t n,
                   size_t known, float* sums, int first, int last) {
    const size_t offset = (size_t(shape.heads) + head) * shape.head_dim * size_of(E);
    const int whole = last / kLanes * kLanes;
    constexpr int kWide = 4;  // registers per query at a time
    for (int begin = first; begin < whole; begin += kWide * kLanes) {
        const int wide = std::min(kWide, (whole - begin) / kLanes);
        Floats acc[G][kWide] = {};
        for (int g = 0; g < G; g++)
            for (int w = 0; w < wide; w++)
                std::memcpy(&acc[g][w], sums + g * shape.head_dim + begin + w * kLanes, sizeof(Floats));
        auto run = [&](auto width) {
            constexpr int W = decltype(width)::value;
            for (size_t i = 0; i < n; i++) {
                const char* value = rows[i] + offset + begin * size_of(E);
                if (i + kAhead < known) {
                    const char* later = rows[i + kAhead] + offset + begin * size_of(E);
                    for (size_t byte = 0; byte < W * kLanes * size_of(E); byte += 64) __builtin_prefetch(later + byte);
                }
                for (int w = 0; w < W; w++) {
                    const Floats v = load<E>(value + w * kLanes * size_of(E));
                    for (int g = 0; g < G; g++) acc[g][w] += v * weights[g * stride + i];
                }
            }
        };
        if (wide == 4) run(std::integral_constant<int, 4>());
        else if (wide == 3) run(std::integral_constant<int, 3>());
        else if (wide == 2) run(std::integral_constant<int, 2>());
        else run(std::integral_constant<int, 1>());
        for (int g = 0; g < G; g++)
            for (int w = 0; w < wide; w++)
                std::memcpy(sums + g * shape.head_dim + begin + w * kLanes, &acc[g][w], sizeof(Floats));
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
inline Floats exp_of(Floats x) {
    x = x < -87.0f ? Floats{} - 87.0f : x;
    const Floats shifted = x * 1.44269504f + 12582912.0f;  // rounds to an integer in the low bits
    const Floats whole = shifted - 12582912.0f;
    Floats f = x - whole * 0.693359375f;
    f = f + whole * 2.12194440e-4f;
    Floats p = f * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * (f * f) + f + 1.0f;
    return Floats(Ints(p) + ((Ints(shifted) - 0x4b400000) << 23));
}

float largest(const float* from, size_t n) {
    float top = from[0];
    size_t i = 0;
    if (n >= size_t(kLanes)) {
        Floats most;
        std::memcpy(&most, from, sizeof most);
        for (i = kLanes; i + kLanes <= n; i += kLanes) {
            Floats x;
            std::memcpy(&x, from + i, sizeof x);
            most = x > most ? x : most;
        }
        for (int lane = 0; lane < kLanes; lane++) top = std::max(top, most[lane]);
    }
    for (; i < n; i++) top = std::max(top, from[i]);
    return top;
}

float weigh(float* logits, size_t n) {
    const float top = largest(logits, n);
    Floats total = {};
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        Floats x;
        std::memcpy(&x, logits + i, sizeof x);
        x = exp_of(x - top);
        std::memcpy(logits + i, &x, sizeof x);
        total += x;
    }
    float rest = 0;
    for (; i < n; i++) {
        const Floats x = exp_of(Floats{} + (logits[i] - top));
        logits[i] = x[0];
        rest += x[0];
    }
    const float all = sum(total) + rest;
    for (i = 0; i < n; i++) logits[i] /= all;
    return top + std::log(all);
}

}  // namespace
