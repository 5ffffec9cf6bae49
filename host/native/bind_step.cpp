#include "bind_step.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "placement.h"
#include "quantise.h"
#include "step.h"

using namespace nanobind::literals;
using namespace hillinfer;

void check_tiles(const Query& query, const In<uint8_t, 2>& tiles, const In<int8_t, 2>& exponents, size_t count) {
    check(tiles.shape(0) >= count, "too few tiles");
    check(tiles.shape(1) == query.tile_bytes(), "tiles are [n, tile_bytes] of the query's heads, dim and key_format");
    check(exponents.shape(0) >= count && int(exponents.shape(1)) == query.heads, "exponents are [n, heads]");
}

RowShape make_shape(int heads, int group, int dim, const std::string& element, size_t row_bytes) {
    RowShape shape{heads, group, dim, Element::float32, row_bytes};
    if (element == "bfloat16") shape.element = Element::bfloat16;
    else if (element == "float16") shape.element = Element::float16;
    else check(element == "float32", "element is float32, bfloat16 or float16");
    check(row_bytes >= 2 * key_bytes(shape), "row_bytes is less than a key and a value");
    return shape;
}

namespace {

using Size = std::tuple<int, int, int>;

// Where the scoring keys and rows of a stream are: the same for many steps. Holds on to the arrays.
class Tiers {
  public:
    Tiers(Size size, const std::string& element, std::vector<RunArguments> keys, In<int32_t, 1> slot_of,
          In<uint8_t, 2> pool, Out<uint8_t, 2> newest, Out<uint8_t, 2> tiles, In<int8_t, 2> exponents)
        : shape_(make_shape(std::get<0>(size), std::get<1>(size), std::get<2>(size), element, pool.shape(1))),
          arrays_(std::move(keys)),
          slot_of_(slot_of),
          pool_(pool),
          newest_(newest),
          tiles_(tiles),
          exponents_(exponents) {
        check(newest.shape(1) == pool.shape(1), "rows are [n, row_bytes]");
        check(tiles.shape(0) == exponents.shape(0) && exponents.shape(1) == size_t(shape_.heads), "exponents are [n, heads]");
        int64_t next = 0;
        for (const auto& [first, tokens, keys, exponents] : arrays_) {
            check(first == next && tokens > 0 && tokens % kTile == 0, "runs of whole tiles follow each other");
            check(keys.shape(0) * kTile >= size_t(tokens) && keys.shape(1) == tiles.shape(1), "too few tiles");
            check(exponents.shape(0) * kTile >= size_t(tokens) && exponents.shape(1) == size_t(shape_.heads),
                  "exponents are [n, heads]");
            next += tokens;
            runs_.push_back({first, tokens, keys.data(), exponents.data()});
        }
        check(size_t(next) == slot_of.shape(0), "a slot for every token that is not among the newest");
        int32_t last = -1;
        for (size_t i = 0; i < slot_of.shape(0); i++) last = std::max(last, slot_of.data()[i]);
        check(last < int64_t(pool.shape(0)), "no such slot");
    }

    Query ask(uintptr_t query, double scaling, std::optional<In<float, 2>> normaliser, In<int8_t, 1> lowest,
              bool sum) const {
        const size_t heads = shape_.heads, group = shape_.group, dim = shape_.head_dim;
        check(lowest.shape(0) == heads, "lowest is [heads]");
        check(!normaliser || (normaliser->shape(0) == heads && normaliser->shape(1) == group),
              "normaliser is [heads, group]");
        const Quantised to = quantise(reinterpret_cast<const float*>(query), heads, group, dim, scaling,
                                      normaliser ? normaliser->data() : nullptr, lowest.data(), sum);
        Query asked;
        asked.heads = shape_.heads, asked.group = shape_.group, asked.sum = sum;
        asked.head_dim = padded(shape_.head_dim, asked.format);
        for (int head = 0; head < shape_.heads; head++) asked.active.push_back(head);
        for (size_t i = 0; i < heads * group; i++) asked.add(to.q8.data() + i * dim, int(dim), to.m[i], to.r[i], to.o[i]);
        return asked;
    }

    Step* step(uintptr_t query, uintptr_t key, uintptr_t value, float scaling, const Query& asked, size_t newest,
               size_t count, int handicap, ThreadPool* threads) {
        const size_t stored = slot_of_.shape(0), length = stored + newest, begun = (newest + kTile - 1) / kTile;
        check(newest < newest_.shape(0), "no room for the step's own row");
        check(asked.heads == shape_.heads && asked.tile_bytes() == tiles_.shape(1) && begun <= tiles_.shape(0),
              "tiles are [n, tile_bytes] of the query's heads, dim and key_format");
        check(count <= length, "count exceeds the tokens");
        check(handicap >= 0 && handicap <= INT16_MAX, "handicap is 0 to 32767");
        std::vector<Run> keys = runs_;
        if (newest) keys.push_back({int64_t(stored), int64_t(begun * kTile), tiles_.data(), exponents_.data()});
        const float* from = reinterpret_cast<const float*>(query);
        std::vector<float> scaled(from, from + size_t(shape_.heads) * shape_.group * shape_.head_dim);
        for (float& each : scaled) each *= scaling;
        char* own = reinterpret_cast<char*>(newest_.data()) + newest * shape_.row_bytes;
        std::memcpy(own, reinterpret_cast<const void*>(key), key_bytes(shape_));
        std::memcpy(own + key_bytes(shape_), reinterpret_cast<const void*>(value), key_bytes(shape_));
        const Places places{int64_t(length), int64_t(stored), slot_of_.data(),
                            reinterpret_cast<const char*>(pool_.data()), reinterpret_cast<const char*>(newest_.data())};
        nb::gil_scoped_release released;
        return new Step(shape_, std::move(scaled), asked, keys, places, count, handicap, own, threads);
    }

    bool cast(size_t newest, int limit) {
        check(shape_.element == Element::float32 && newest < newest_.shape(0), "no such float32 key");
        if (newest % kTile == 0) return false;
        check(tiles_.shape(1) == tile_bytes(shape_.heads, shape_.head_dim, KeyFormat::int8), "tiles are of int8 keys");
        const uint8_t* row = newest_.data() + newest * shape_.row_bytes;
        return pack_with(KeyFormat::int8, reinterpret_cast<const float*>(row), shape_.heads, shape_.head_dim,
                         exponents_.data() + newest / kTile * shape_.heads, limit, tiles_.data(), newest);
    }

  private:
    RowShape shape_;
    std::vector<RunArguments> arrays_;
    std::vector<Run> runs_;  // of `arrays_`
    In<int32_t, 1> slot_of_;
    In<uint8_t, 2> pool_;
    Out<uint8_t, 2> newest_, tiles_;
    In<int8_t, 2> exponents_;
};

nb::tuple finish_step(Step& step, std::optional<In<uint8_t, 2>> cold_rows) {
    const RowShape& shape = step.shape();
    const size_t heads = shape.heads, group = shape.group, dim = shape.head_dim;
    check((cold_rows ? cold_rows->shape(0) : 0) == step.cold.size(), "a row for every cold token");
    check(!cold_rows || cold_rows->shape(1) == shape.row_bytes, "rows are [n, row_bytes]");
    std::vector<float> out(heads * group * dim), lse(heads * group);
    {
        nb::gil_scoped_release released;
        step.finish(cold_rows ? reinterpret_cast<const char*>(cold_rows->data()) : nullptr, out.data(), lse.data());
    }
    return nb::make_tuple(give<float, 4>(std::move(out), {heads, group, 1, dim}),
                          give<float, 2>(std::move(lse), {heads, group}));
}

template <std::vector<int64_t> Step::*member>
New<int64_t, 1> positions_of(const Step& step) {
    return give<int64_t, 1>(step.*member, {(step.*member).size()});
}

}  // namespace

void bind_step(nb::module_& m) {
    nb::class_<Tiers>(m, "Tiers", "Where the scoring keys and rows of a stream are: the same for many steps.")
        .def(nb::init<Size, const std::string&, std::vector<RunArguments>, In<int32_t, 1>, In<uint8_t, 2>,
                      Out<uint8_t, 2>, Out<uint8_t, 2>, In<int8_t, 2>>(),
             "size"_a, "element"_a, "keys"_a, "slot_of"_a, "pool"_a, "newest"_a, "tiles"_a, "exponents"_a,
             "``size`` is (KV heads, queries per head, dimension). Keys are runs, one after the other, of all tokens "
             "that have a slot_of int32 [stored] in pool uint8 [n, row_bytes]. The newest tokens behind them have rows "
             "uint8 [n, row_bytes], scoring keys [t, tile_bytes] and exponents int8 [t, H].")
        .def("ask", &Tiers::ask, "query"_a, "scaling"_a, "normaliser"_a.none(), "lowest"_a, "sum"_a,
             "The int8 Query of all heads, of a query float32 [H, G, d] by its address; see hillinfer.kv.query.")
        .def("step", &Tiers::step, "query"_a, "key"_a, "value"_a, "scaling"_a, "asked"_a, "newest"_a, "count"_a,
             "handicap"_a = 0, "threads"_a = nb::none(),
             "A step behind ``newest`` newest tokens: its query float32 [H, G, d], key and value [H, d] of the rows' "
             "type are contiguous and given by address. Key and value are copied to the next of the newest rows. All "
             "memory must stay as it is until ``finish``. Scores of tokens without a slot lose ``handicap``. The hot rows are attended to at once, unless some are cold: "
             "then in ``attend``.")
        .def("cast", &Tiers::cast, "newest"_a, "limit"_a,
             "Cast the key of a newest token, float32, to int8 with the exponents of its tile; False if it begins one, or "
             "does not fit them.");
    nb::class_<Step>(m, "Step", "A decode step of one stream: score, select, attend to what is in memory.")
        .def("attend", &Step::attend, nb::call_guard<nb::gil_scoped_release>(), "Attend to the rows in memory.")
        .def("count", [](const Step& step, Out<uint16_t, 1> counts, int ageing, int hit) {
            check(step.positions.empty() || size_t(step.positions.back()) < counts.shape(0), "no such token");
            count_step(counts.data(), counts.shape(0), step.positions.data(), step.positions.size(), ageing, hit);
        }, "counts"_a, "ageing"_a, "hit"_a, "``count_step`` of what it selected.")
        .def_prop_ro("positions", &positions_of<&Step::positions>, nb::rv_policy::move)
        .def_prop_ro("hot", &positions_of<&Step::hot>, nb::rv_policy::move)
        .def_prop_ro("hot_ranks", &positions_of<&Step::hot_ranks>, nb::rv_policy::move)
        .def_prop_ro("cold", &positions_of<&Step::cold>, nb::rv_policy::move)
        .def_prop_ro("cold_ranks", &positions_of<&Step::cold_ranks>, nb::rv_policy::move)
        .def_prop_ro("hot_rows", [](const Step& self) { return self.hot.size(); })
        .def_prop_ro("cold_rows", [](const Step& self) { return self.cold.size(); })
        .def_prop_ro("seconds", [](const Step& s) { return nb::make_tuple(s.scored, s.selected, s.attended); },
                     "When scores, selection and attention were there (time.perf_counter).")
        .def("finish", &finish_step, "cold_rows"_a.none(), "Output float32 [H, G, 1, d], log-sum-exp float32 [H, G].");
}
