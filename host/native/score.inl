// Scoring of tiles, once for every instruction set, whose own part comes before this:
//
//   Int8Keys, Int4Keys   dot products of 16 tokens: what a step of the layout is made of (Step), what gathers them
//                        for one query (Sums), how one is added to the other, and the dot products in the end
//   kQueries             queries that share a look at a step
//   kUsual               whether the usual head dimensions get code of their own
//   cast                 16 FP16 numbers times 2^e, rounded half to even and saturated to ±127; not a number: 0
//   rank                 of 16 dot products, under a plain scale: as Ranks, whose larger is found, and which in the
//                        end are made whole
//
// Everything is exact, so every instruction set gives the same integers.

namespace {

using hillinfer::Head;
using hillinfer::KeyFormat;
using hillinfer::Query;
using hillinfer::Scale;

typedef int16_t Shorts __attribute__((vector_size(kLanes * sizeof(int16_t))));

// Keys as the kernel reads them, cast on the way. Products are of integers in float32, and sums stay below 2^24 (the
// maker of a query sees to that): exact.
struct Fp16Keys {
    static constexpr KeyFormat kFormat = KeyFormat::fp16;
    using Step = Floats;
    using Sums = Floats;
    static const float* queries(const Query& query) { return query.wide.data(); }
    static Step load(const uint8_t* key, float scale) { return cast(key, scale); }
    static void add(Sums& sums, const Step& step, const float* q) { sums += step * q[0]; }
    static Ints dot(const Sums& sums, int32_t) { return __builtin_convertvector(sums, Ints); }
};

// The maximum or the sum over queries, of 16 tokens.
struct Reduced {
    Ranks most = Ranks{} + INT32_MIN;  // of the usual ones
    Ints most_of_others = Ints{} + INT32_MIN;
    int64_t total[kLanes] = {};

    void store(int16_t* scores, bool sum) const {
        if (sum) {
            for (int i = 0; i < kLanes; i++) scores[i] = int16_t(std::clamp<int64_t>(total[i], INT16_MIN, INT16_MAX));
            return;
        }
        const Ints usual = whole(most), all = usual > most_of_others ? usual : most_of_others;
        const Ints floor = all < INT16_MIN ? Ints{} + INT16_MIN : all;
        const Shorts clamped = __builtin_convertvector(floor > INT16_MAX ? Ints{} + INT16_MAX : floor, Shorts);
        std::memcpy(scores, &clamped, sizeof clamped);
    }
};

// One query's 16 dot products, whatever the numbers.
__attribute__((noinline)) void reduce_any(const Ints& dot, const Scale& scale, bool sum, Reduced& reduced) {
    Ints u = dot;
    if (scale.plain) {
        u = whole(rank(dot, scale));
    } else {
        for (int i = 0; i < kLanes; i++) {
            const int64_t t = int64_t(dot[i]) * scale.m >> scale.shift;
            u[i] = int32_t(std::clamp<int64_t>(t, -(1 << 23), (1 << 23) - 1)) - scale.o;
        }
    }
    if (!sum) reduced.most_of_others = u > reduced.most_of_others ? u : reduced.most_of_others;
    else for (int i = 0; i < kLanes; i++) reduced.total[i] += u[i];
}

// 16 tokens of a head with G of its queries, of which `scales` are. Dim: the head's dimension where it is a usual one,
// else 0. Keys are not prefetched: they come in order, and on top of what the processor fetches ahead by itself that cost
// a fifth of the rate.
template <class Keys, int Dim, int G, typename Number>
inline void score_queries(const uint8_t* key, const Head& head, const Scale* scales, int head_dim, const Number* q,
                          bool sum, Reduced& reduced) {
    constexpr hillinfer::Layout layout = hillinfer::layout(Keys::kFormat);
    const int dim = Dim ? Dim : head_dim;
    const float cast = head.cast;
    typename Keys::Sums sums[G] = {};
#pragma GCC unroll 8
    for (int d = 0; d < dim; d += layout.dims, key += layout.bytes) {
        const typename Keys::Step step = Keys::load(key, cast);
#pragma GCC unroll 8
        for (int g = 0; g < G; g++) Keys::add(sums[g], step, q + g * dim + d);
    }
    if (__builtin_expect(head.usual, true)) {
        Ranks most = reduced.most;
#pragma GCC unroll 8
        for (int g = 0; g < G; g++) most = larger(rank(Keys::dot(sums[g], scales[g].bias), scales[g]), most);
        reduced.most = most;
    } else {
#pragma GCC unroll 8
        for (int g = 0; g < G; g++) {
            const Ints dot = Keys::dot(sums[g], scales[g].bias);
            reduce_any(dot, scales[g], sum, reduced);
        }
    }
}

template <class Keys, int Dim>
void score_tiles(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    const int dim = Dim ? Dim : query.head_dim;
    const size_t head_bytes = hillinfer::head_bytes(dim, Keys::kFormat);
    const size_t active = query.active.size();
    const auto* queries = Keys::queries(query);
    hillinfer::Scales scales(query);
    for (size_t tile = 0; tile < tiles; tile++, exponents += query.heads) {
        const Head* heads = scales.of_tile(exponents);
        for (int group = 0; group < hillinfer::kTile / kLanes; group++) {
            Reduced reduced;
            for (size_t a = 0; a < active; a++) {
                const uint8_t* key = keys + query.active[a] * head_bytes;
                for (int g = 0; g < query.group;) {
                    auto run = [&](auto count) {
                        constexpr int G = decltype(count)::value;
                        const auto* q = queries + (a * query.group + g) * dim;
                        score_queries<Keys, Dim, G>(key, heads[a], heads[a].scales + g, dim, q, query.sum, reduced);
                        g += G;
                    };
                    const int left = std::min(query.group - g, kQueries);
                    if (kQueries >= 8 && left == 8) run(std::integral_constant<int, std::min(8, kQueries)>());
                    else if (left >= 4) run(std::integral_constant<int, std::min(4, kQueries)>());
                    else if (left == 3) run(std::integral_constant<int, std::min(3, kQueries)>());
                    else if (left == 2) run(std::integral_constant<int, std::min(2, kQueries)>());
                    else run(std::integral_constant<int, 1>());
                }
            }
            reduced.store(scores, query.sum);
            keys += query.heads * head_bytes, scores += kLanes;
        }
    }
}

template <class Keys>
void score_format(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    if (kUsual && query.head_dim == 64) score_tiles<Keys, kUsual ? 64 : 0>(query, keys, exponents, tiles, scores);
    else if (kUsual && query.head_dim == 128) score_tiles<Keys, kUsual ? 128 : 0>(query, keys, exponents, tiles, scores);
    else score_tiles<Keys, 0>(query, keys, exponents, tiles, scores);
}

void score(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    if (query.format == KeyFormat::int8) score_format<Int8Keys>(query, keys, exponents, tiles, scores);
    else if (query.format == KeyFormat::int4) score_format<Int4Keys>(query, keys, exponents, tiles, scores);
    else score_format<Fp16Keys>(query, keys, exponents, tiles, scores);
}

}  // namespace
