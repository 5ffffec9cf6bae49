// hillinfer._native: what of a decode step has to be fast. Arrays in, arrays out; no torch, no policy.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "attention.h"
#include "bind_pool.h"
#include "bind_rows.h"
#include "bind_step.h"
#include "crc32c.h"
#include "huge_pages.h"
#include "keys.h"
#include "placement.h"
#include "quantise.h"
#include "scan.h"
#include "select.h"
#include "slices.h"
#include "variant.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hillinfer;

static KeyFormat format_named(const std::string& name) {
    if (name == "int8") return KeyFormat::int8;
    if (name == "int4") return KeyFormat::int4;
    check(name == "fp16", "key_format is int8, int4 or fp16");
    return KeyFormat::fp16;
}

static Query make_query(In<int8_t, 3> q8, In<int32_t, 2> m, In<int32_t, 2> r, In<int32_t, 2> o,
                        std::vector<int> heads, bool sum, const std::string& key_format) {
    const int kv_heads = int(q8.shape(0)), group = int(q8.shape(1)), dim = int(q8.shape(2));
    for (auto* each : {&m, &r, &o})
        check(int(each->shape(0)) == kv_heads && int(each->shape(1)) == group, "m, r and o are [heads, group]");
    Query query;
    query.format = format_named(key_format);
    check(query.format != KeyFormat::fp16 || dim <= 1024, "fp16 keys have at most 1024 dimensions");  // sums below 2^24
    query.heads = kv_heads, query.group = group, query.head_dim = padded(dim, query.format), query.sum = sum;
    query.active = heads;
    for (int head : heads) {
        check(head >= 0 && head < kv_heads, "no such head");
        for (size_t at = size_t(head) * group; at < size_t(head + 1) * group; at++)
            query.add(q8.data() + at * dim, dim, m.data()[at], r.data()[at], o.data()[at]);
    }
    return query;
}

// (q8 [H, G, d], m, r, o [H, G])
static nb::tuple quantise_query(In<float, 3> query, double scaling, std::optional<In<float, 2>> normaliser,
                                In<int8_t, 1> lowest, bool sum) {
    const size_t heads = query.shape(0), group = query.shape(1), dim = query.shape(2);
    check(lowest.shape(0) == heads, "lowest is [heads]");
    check(!normaliser || (normaliser->shape(0) == heads && normaliser->shape(1) == group), "normaliser is [heads, group]");
    Quantised to = quantise(query.data(), heads, group, dim, scaling, normaliser ? normaliser->data() : nullptr,
                            lowest.data(), sum);
    return nb::make_tuple(give<int8_t, 3>(std::move(to.q8), {heads, group, dim}),
                          give<int32_t, 2>(std::move(to.m), {heads, group}),
                          give<int32_t, 2>(std::move(to.r), {heads, group}),
                          give<int32_t, 2>(std::move(to.o), {heads, group}));
}

static void score(const Query& query, In<uint8_t, 2> tiles, In<int8_t, 2> exponents, Out<int16_t, 1> scores,
                  ThreadPool* pool, int rounds) {
    const size_t count = tiles.shape(0);
    check_tiles(query, tiles, exponents, count);
    check(scores.shape(0) >= count * kTile, "scores need 64 per tile");
    nb::gil_scoped_release released;
    for (int round = 0; round < rounds; round++)
        if (pool) score_tiles(*pool, query, tiles.data(), exponents.data(), count, scores.data());
        else variant().score(query, tiles.data(), exponents.data(), count, scores.data());
}

template <typename Keys>
static void check_room(const Keys& keys, const Out<uint8_t, 2>& tiles, size_t first, KeyFormat format) {
    check(tiles.shape(1) == tile_bytes(int(keys.shape(1)), int(keys.shape(2)), format),
          "tiles are [n, tile_bytes] of the keys' heads, dim and key_format");
    check(first + keys.shape(0) <= tiles.shape(0) * kTile, "no room for the keys");
}

static void pack_integers(In<int8_t, 3> keys, Out<uint8_t, 2> tiles, size_t first, const std::string& key_format) {
    const KeyFormat format = format_named(key_format);
    check(format != KeyFormat::fp16, "fp16 keys are given as uint16, their bits");
    check_room(keys, tiles, first, format);
    pack_keys(format, keys.data(), keys.shape(0), int(keys.shape(1)), int(keys.shape(2)), tiles.data(), first);
}

static void pack_halves(In<uint16_t, 3> keys, Out<uint8_t, 2> tiles, size_t first, const std::string& key_format) {
    check(format_named(key_format) == KeyFormat::fp16, "keys of uint16 are fp16");
    check_room(keys, tiles, first, KeyFormat::fp16);
    pack_keys(keys.data(), keys.shape(0), int(keys.shape(1)), int(keys.shape(2)), tiles.data(), first);
}

static bool pack_one(In<float, 2> key, In<int8_t, 1> exponents, int limit, Out<uint8_t, 2> tiles, size_t place,
                     const std::string& key_format) {
    const KeyFormat format = format_named(key_format);
    const int heads = int(key.shape(0)), dim = int(key.shape(1));
    check(tiles.shape(1) == tile_bytes(heads, dim, format),
          "tiles are [n, tile_bytes] of the key's heads, dim and key_format");
    check(int(exponents.shape(0)) == heads && place < tiles.shape(0) * kTile, "no room for the key");
    check(limit > 0 && limit <= layout(format).limit, "limit is 127, for int4 keys 7");
    return pack_with(format, key.data(), heads, dim, exponents.data(), limit, tiles.data(), place);
}

static New<int64_t, 1> top_positions(In<int16_t, 1> scores, size_t count) {
    check(count <= scores.shape(0), "count exceeds the scores");
    std::vector<int64_t> positions(count);
    {
        nb::gil_scoped_release released;
        top(scores.data(), scores.shape(0), count, positions.data());
    }
    return give<int64_t, 1>(std::move(positions), {count});
}

static void handicap_scores(Out<int16_t, 1> scores, In<int32_t, 1> slot_of, int by) {
    check(slot_of.shape(0) <= scores.shape(0), "more slots than scores");
    check(by >= 0 && by <= INT16_MAX, "by is 0 to 32767");
    nb::gil_scoped_release released;
    handicap(scores.data(), slot_of.data(), slot_of.shape(0), by);
}

static New<uint32_t, 1> checksums(In<uint8_t, 2> rows) {
    std::vector<uint32_t> sums(rows.shape(0));
    {
        nb::gil_scoped_release released;
        for (size_t i = 0; i < sums.size(); i++) sums[i] = checksum(rows.data() + i * rows.shape(1), rows.shape(1));
    }
    const size_t count = sums.size();
    return give<uint32_t, 1>(std::move(sums), {count});
}

static Attention make_attention(In<float, 3> query, float scaling, const std::string& element, size_t row_bytes,
                                size_t count) {
    const int heads = int(query.shape(0)), group = int(query.shape(1)), dim = int(query.shape(2));
    std::vector<float> scaled(query.data(), query.data() + query.size());
    for (float& each : scaled) each *= scaling;
    return Attention(make_shape(heads, group, dim, element, row_bytes), std::move(scaled), count);
}

static void attend(Attention& attention, In<uint8_t, 2> rows, In<int64_t, 1> index, In<int64_t, 1> ranks, int head) {
    check(rows.shape(1) == attention.shape.row_bytes, "rows are [n, row_bytes]");
    check(head < attention.shape.heads, "no such head");
    check(index.shape(0) == ranks.shape(0), "a rank for every row");
    for (size_t i = 0; i < index.shape(0); i++) {
        check(index.data()[i] >= 0 && size_t(index.data()[i]) < rows.shape(0), "no such row");
        check(ranks.data()[i] >= 0 && size_t(ranks.data()[i]) < attention.count, "no such rank");
    }
    nb::gil_scoped_release released;
    std::vector<const char*> where(index.shape(0));
    for (size_t i = 0; i < where.size(); i++)
        where[i] = reinterpret_cast<const char*>(rows.data()) + index.data()[i] * attention.shape.row_bytes;
    attention.add(where.data(), ranks.data(), where.size(), head);
}

static nb::tuple finish_attention(Attention& attention) {
    const RowShape& shape = attention.shape;
    const size_t heads = shape.heads, group = shape.group, dim = shape.head_dim;
    std::vector<float> out(heads * group * dim), lse(heads * group);
    check(attention.finish(out.data(), lse.data()), "a head has no row to attend to");
    return nb::make_tuple(give<float, 3>(std::move(out), {heads, group, dim}),
                          give<float, 2>(std::move(lse), {heads, group}));
}

static std::shared_ptr<Launch> make_launch(const Query& query, std::vector<RunArguments> arguments, uint32_t tag,
                                           int min_score) {
    std::vector<Run> runs;
    for (auto& [first, tokens, tiles, exponents] : arguments) {
        const size_t count = tokens / kTile;
        check(first >= 0 && tokens > 0 && tokens % kTile == 0, "a run is whole tiles");
        check_tiles(query, tiles, exponents, count);
        runs.push_back({first, tokens, tiles.data(), exponents.data()});
    }
    return std::make_shared<Launch>(query, std::move(runs), tag, min_score);
}

// Until the block is there (true), or nothing more will come (false); Ctrl-C is heard.
static bool wait_block(Launch& launch, size_t block) {
    check(block < launch.blocks(), "no such block");
    while (true) {
        bool ended;
        {
            nb::gil_scoped_release released;
            ended = launch.wait(block, 0.1);
        }
        if (ended) return launch.is_done(block);
        if (PyErr_CheckSignals()) throw nb::python_error();
    }
}

static New<uint32_t, 1> make_slot(const Launch& launch, size_t block) {
    check(block < launch.blocks(), "no such block");
    std::vector<uint32_t> slot(kSlotWords);
    launch.write_slot(block, slot.data());
    return give<uint32_t, 1>(std::move(slot), {kSlotWords});
}

static bool merge(Launch& launch, Out<int16_t, 1> scores) {
    check(launch.end() <= int64_t(scores.shape(0)), "no room for the scores");
    for (size_t block = 0; block < launch.blocks(); block++)
        if (!wait_block(launch, block)) return false;
    launch.copy_to(scores.data());
    return true;
}

static void step_counts(Out<uint16_t, 1> counts, In<int64_t, 1> selected, int ageing, int hit) {
    for (size_t i = 0; i < selected.shape(0); i++)
        check(selected.data()[i] >= 0 && size_t(selected.data()[i]) < counts.shape(0), "no such token");
    count_step(counts.data(), counts.shape(0), selected.data(), selected.shape(0), ageing, hit);
}

static New<int64_t, 1> coldest_held(In<uint16_t, 1> counts, In<int64_t, 1> held, int64_t pinned_from, size_t most) {
    check(pinned_from <= int64_t(counts.shape(0)), "a count for every unpinned token");
    std::vector<int64_t> found = coldest(counts.data(), held.data(), held.shape(0), pinned_from, most);
    const size_t size = found.size();
    return give<int64_t, 1>(std::move(found), {size});
}

static void exchange_rows(Out<uint8_t, 2> pool_rows, Out<int32_t, 1> slot_of, Out<int64_t, 1> position_of,
                          Out<int16_t, 1> tile_fill, In<int64_t, 1> demote, In<int64_t, 1> promote,
                          In<uint8_t, 2> rows, In<int64_t, 1> ranks) {
    const size_t n = demote.shape(0), tokens = slot_of.shape(0);
    check(promote.shape(0) == n && ranks.shape(0) == n, "as many enter as leave");
    check(rows.shape(1) == pool_rows.shape(1), "rows are [n, row_bytes]");
    check(tile_fill.shape(0) * kTile >= tokens, "a count for every tile");
    for (size_t i = 0; i < n; i++) {
        const int64_t leaving = demote.data()[i], coming = promote.data()[i], rank = ranks.data()[i];
        check(leaving >= 0 && size_t(leaving) < tokens && coming >= 0 && size_t(coming) < tokens, "no such token");
        const int32_t slot = slot_of.data()[leaving];
        check(slot >= 0 && size_t(slot) < position_of.shape(0) && size_t(slot) < pool_rows.shape(0), "not in the pool");
        check(slot_of.data()[coming] < 0, "in the pool already");
        check(rank >= 0 && size_t(rank) < rows.shape(0), "no such row");
    }
    exchange({reinterpret_cast<char*>(pool_rows.data()), pool_rows.shape(1), slot_of.data(), position_of.data(),
              tile_fill.data()},
             demote.data(), promote.data(), reinterpret_cast<const char*>(rows.data()), ranks.data(), n);
}

static void large_pages(Out<uint8_t, 2> memory) {
    check(memory.size() >= kHugePage, "memory is smaller than a huge page");
    check(uintptr_t(memory.data()) % kHugePage == 0, "memory begins at a huge page");
    in_huge_pages(reinterpret_cast<char*>(memory.data()), memory.size());
}

NB_MODULE(_native, m) {
    m.doc() = "The fast parts of a decode step: scoring, selection, attention over rows in place, cold reads.";
    nb::set_leak_warnings(false);  // an interrupted program may end with reads in flight

    m.def("variants", [] {
        std::vector<std::string> names;
        for (const Variant* each : variants()) names.emplace_back(each->name);
        return names;
    }, "Instruction sets this processor can run, best first.");
    m.def("variant", [] { return std::string(variant().name); }, "The instruction set in use.");
    m.def("use_variant", [](const std::string& name) { check(use_variant(name.c_str()), "no such variant"); },
          "name"_a, "Use an instruction set by name (for tests and benchmarks).");

    m.def("tile_bytes", [](int heads, int dim, const std::string& format) {
        return tile_bytes(heads, dim, format_named(format));
    }, "heads"_a, "dim"_a, "key_format"_a = "int8", "Bytes of a tile of 64 tokens in the scanning layout.");
    m.def("pack_keys", &pack_integers, "keys"_a, "tiles"_a, "first"_a, "key_format"_a = "int8",
          "Put keys int8 [n, H, d] (int4: -8 to 7) into tiles uint8 [t, tile_bytes], from token ``first`` on.");
    m.def("pack_keys", &pack_halves, "keys"_a, "tiles"_a, "first"_a, "key_format"_a,
          "The same of fp16 keys, uint16 [n, H, d]: their bits.");
    m.def("pack_with", &pack_one, "key"_a, "exponents"_a, "limit"_a, "tiles"_a, "place"_a, "key_format"_a = "int8",
          "Cast a key float32 [H, d] with the exponents of its tile and pack it; False if it does not fit them. An "
          "fp16 key is packed as it is, if it fits.");
    m.def("top", &top_positions, "scores"_a, "count"_a,
          "Ascending positions int64 of the ``count`` highest scores int16; ties go to the newest.");
    m.def("handicap", &handicap_scores, "scores"_a, "slot_of"_a, "by"_a,
          "Scores int16 [n] of tokens without a slot (slot_of int32 [m ≤ n] is negative) lose ``by``, as far as 16 bits go.");
    m.def("crc32c", [](nb::bytes data) { return crc32c(data.c_str(), data.size()); }, "data"_a);
    m.def("checksums", &checksums, "rows"_a, "A 32-bit checksum of each row uint8 [n, bytes].");

    nb::class_<Query>(m, "Query", "The quantised queries of a layer; see hillinfer.kv.query.")
        .def("__init__",
             [](Query* self, In<int8_t, 3> q8, In<int32_t, 2> m_, In<int32_t, 2> r, In<int32_t, 2> o,
                std::vector<int> heads, bool sum, const std::string& key_format) {
                 new (self) Query(make_query(q8, m_, r, o, heads, sum, key_format));
             },
             "q8"_a, "m"_a, "r"_a, "o"_a, "heads"_a, "sum"_a, "key_format"_a = "int8")
        .def("score", &score, "tiles"_a, "exponents"_a, "scores"_a, "pool"_a = nb::none(), "rounds"_a = 1,
             "Scores int16 [64·t] of tiles [t, tile_bytes] in the scanning layout of the query's key_format, with "
             "exponents int8 [t, H]; by the threads of a pool, if one is given; more rounds than one are for benchmarks.");
    bind_pool(m);

    nb::class_<Attention>(m, "Attention", "Attention of one token to rows where they lie, piece by piece.")
        .def("__init__",
             [](Attention* self, In<float, 3> query, float scaling, const std::string& element, size_t row_bytes,
                size_t count) { new (self) Attention(make_attention(query, scaling, element, row_bytes, count)); },
             "query"_a, "scaling"_a, "element"_a, "row_bytes"_a, "count"_a)
        .def("add", &attend, "rows"_a, "index"_a, "ranks"_a, "head"_a = -1,
             "Attend to rows[index], uint8 [n, row_bytes], as the rows of these ranks; ``head``: only that KV head "
             "does. The rows must stay where they are until ``finish``.")
        .def("finish", &finish_attention, "Output float32 [H, G, d] and log-sum-exp float32 [H, G].");

    m.def("quantise", &quantise_query, "query"_a, "scaling"_a, "normaliser"_a.none(), "lowest"_a, "sum"_a,
          "q8 int8 [H, G, d] and m, r, o int32 [H, G] of a query float32 [H, G, d]; see hillinfer.kv.query.");
    bind_step(m);

    nb::class_<Launch>(m, "Launch", "One scan, by the scanning thread and by who waits for it.")
        .def(nb::new_(&make_launch), "query"_a, "runs"_a, "tag"_a, "min_score"_a,
             "Runs are (first token, tokens, tiles, exponents); their memory must outlive the scanning thread.")
        .def_prop_ro("blocks", &Launch::blocks)
        .def_prop_ro("seconds", [](Launch& self) { return nb::make_tuple(self.started(), self.ended_at()); })
        .def("wait", &wait_block, "block"_a, "True once the block is there, False if it never will be.")
        .def("slot", &make_slot, "block"_a, "A block that is there as the kernel writes it, uint32 [1040].")
        .def("merge_into", &merge, "scores"_a, "Put all scores where they belong; False if it ended early.")
        .def("cancel", &Launch::cancel);
    nb::class_<ScanThread>(m, "ScanThread", "Scans long launches while their callers do something else.")
        .def(nb::init<>())
        .def("submit", &ScanThread::submit, "launch"_a)
        .def("close", &ScanThread::close, nb::call_guard<nb::gil_scoped_release>());

    bind_rows(m);

    m.def("count_step", &step_counts, "counts"_a, "selected"_a, "ageing"_a, "hit"_a,
          "Age counts uint16 [n] by 1/2^ageing, then add ``hit`` for each selected token, saturating.");
    m.def("in_huge_pages", &large_pages, "memory"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Ask for huge pages for reserved memory, of which at most the first is in use.");
    m.def("exchange", &exchange_rows, "pool_rows"_a, "slot_of"_a, "position_of"_a, "tile_fill"_a, "demote"_a,
          "promote"_a, "rows"_a, "ranks"_a, "Tokens ``demote`` leave a hot pool, ``promote`` take their slots.");
    m.def("coldest", &coldest_held, "counts"_a, "held"_a, "pinned_from"_a, "most"_a,
          "Up to ``most`` unpinned of the positions held (−1: none), lowest count first, then oldest.");
}
