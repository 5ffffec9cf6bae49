// Scoring of tiles, once for every instruction set, whose own part comes before this:
//
//   Int8Keys, Int4Keys   dot products of 16 tokens: what a step of the layout is made of (Step), what gathers them
//                        for one query (Sums), how one is added to the other, and the dot products in the end
//   kQueries             queries that share a look at a step
//   kUsual               whether the usual head dimensions get code of their own
//   cast                 16 FP16 numbers times 2^e, rounded half to even and saturated to ±127; not a number: 0
//   Ranking              what ranks 16 tokens by their dot products with one query, under the exponents that were set, where
//                        no logit leaves 24 bits: as Ranks, whose larger is found, and which in the end are made whole
//
//   Dots                 those dot products, 16 integers
//
// Everything is exact, so every instruction set gives the same integers.

namespace {

using hillinfer::KeyFormat;
using hillinfer::Query;

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
    static Dots dot(const Sums& sums, int32_t) { return as<Dots>(__builtin_convertvector(sums, Ints)); }
};

// The maximum or the sum over queries, of 16 tokens.
struct Reduced {
    Ranking::Ranks most = Ranking::least();  // of the usual ones
    Ints most_of_others = Ints{} + INT32_MIN;
    int64_t total[kLanes] = {};

    void store(int16_t* scores, bool sum) const {
        if (sum) {
            for (int i = 0; i < kLanes; i++) scores[i] = int16_t(std::clamp<int64_t>(total[i], INT16_MIN, INT16_MAX));
            return;
        }
        const Ints usual = Ranking::whole(most), all = usual > most_of_others ? usual : most_of_others;
        const Ints floor = all < INT16_MIN ? Ints{} + INT16_MIN : all;
        const Shorts clamped = __builtin_convertvector(floor > INT16_MAX ? Ints{} + INT16_MAX : floor, Shorts);
        std::memcpy(scores, &clamped, sizeof clamped);
    }
};

// What a tile's head is scored with.
struct Head {
    int exponent;
    float cast;  // 2^exponent
    bool plain;  // no logit leaves 24 bits
    bool usual;  // and the maximum is asked for
};

// One query's 16 dot products, whatever the numbers: u = saturate24((dot·m) >> (r + e)) − o.
__attribute__((noinline)) void reduce_any(const Query& query, const Ranking& ranking, size_t at, const Head& head,
                                          const Dots& dots, Reduced& reduced) {
    const Ints dot = as<Ints>(dots);
    Ints u = dot;
    if (head.plain) {
        u = Ranking::whole(ranking.rank(dots, at));
    } else {
        const int shift = std::clamp(query.r[at] + head.exponent, 0, 40);
        for (int i = 0; i < kLanes; i++) {
            const int64_t t = int64_t(dot[i]) * query.m[at] >> shift;
            u[i] = int32_t(std::clamp<int64_t>(t, -(1 << 23), (1 << 23) - 1)) - query.o[at];
        }
    }
    if (!query.sum) reduced.most_of_others = u > reduced.most_of_others ? u : reduced.most_of_others;
    else for (int i = 0; i < kLanes; i++) reduced.total[i] += u[i];
}

// 16 tokens of a head with G of its queries, from `at` on. Dim: the head's dimension where it is a usual one, else 0. Keys
// are not prefetched: they come in order, and on top of what the processor fetches ahead by itself that cost a fifth of
// the rate.
template <class Keys, int Dim, int G, typename Number>
inline void score_queries(const Query& query, const Ranking& ranking, size_t at, const Head& head, const uint8_t* key,
                          const Number* q, Reduced& reduced) {
    constexpr hillinfer::Layout layout = hillinfer::layout(Keys::kFormat);
    const int dim = Dim ? Dim : query.head_dim;
    const float cast = head.cast;
    typename Keys::Sums sums[G] = {};
#pragma GCC unroll 8
    for (int d = 0; d < dim; d += layout.dims, key += layout.bytes) {
        const typename Keys::Step step = Keys::load(key, cast);
#pragma GCC unroll 8
        for (int g = 0; g < G; g++) Keys::add(sums[g], step, q + g * dim + d);
    }
    const int32_t* biases = query.bias.data() + at;
    if (__builtin_expect(head.usual, true)) {
        Ranking::Ranks most = reduced.most;
#pragma GCC unroll 8
        for (int g = 0; g < G; g++)
            most = Ranking::larger(ranking.rank(Keys::dot(sums[g], biases[g]), at + g), most);
        reduced.most = most;
    } else {
#pragma GCC unroll 8
        for (int g = 0; g < G; g++) {
            reduce_any(query, ranking, at + g, head, Keys::dot(sums[g], biases[g]), reduced);
        }
    }
}

template <class Keys, int Dim>
void score_tiles(const Query& query, const uint8_t* keys, const int8_t* exponents, size_t tiles, int16_t* scores) {
    const int dim = Dim ? Dim : query.head_dim;
    const size_t head_bytes = hillinfer::head_bytes(dim, Keys::kFormat);
    const size_t active = query.active.size();
    const auto* queries = Keys::queries(query);
    Ranking ranking(query);
    std::vector<Head> heads(active);
    for (size_t tile = 0; tile < tiles; tile++, exponents += query.heads) {
        for (size_t a = 0; a < active; a++) {
            const int exponent = std::clamp<int>(exponents[query.active[a]], -16, 15);
            const bool plain = exponent >= query.lowest[a] && exponent <= query.highest[a];
            heads[a] = {exponent, hillinfer::power_of_two(exponent), plain, plain && !query.sum};
            ranking.set(a, exponent);
        }
        for (int group = 0; group < hillinfer::kTile / kLanes; group++) {
            Reduced reduced;
            for (size_t a = 0; a < active; a++) {
                const uint8_t* key = keys + query.active[a] * head_bytes;
                for (int g = 0; g < query.group;) {
                    auto run = [&](auto count) {
                        constexpr int G = decltype(count)::value;
                        const size_t at = a * query.group + g;
                        score_queries<Keys, Dim, G>(query, ranking, at, heads[a], key, queries + at * dim, reduced);
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
