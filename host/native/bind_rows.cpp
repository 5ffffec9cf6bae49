#include "bind_rows.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "row_reader.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hillinfer;

namespace {

using Positions = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Checksums = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ranks = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

void check(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

// The objects of Python hold on to the reader, so that it outlives what is in flight.
struct Reader {
    std::shared_ptr<RowReader> reader;
};

struct File {
    std::shared_ptr<RowReader> reader;
    RowFile file;

    File(const Reader& from, int fd, int64_t row_bytes, int64_t alignment)
        : reader(from.reader), file{fd, -1, row_bytes, alignment} {
        check(row_bytes > 0 && alignment > 0, "row_bytes and alignment are positive");
        check(row_bytes + 2 * alignment <= int64_t(reader->settings.request_bytes), "a row must fit into a request");
        file.file = reader->add_file(fd);
    }
    ~File() { reader->remove_file(file.file); }
    File(const File&) = delete;
};

struct Read {
    std::shared_ptr<RowReader> reader;
    std::shared_ptr<RowRead> read;
    nb::object file;  // which the engine must know as long as requests may start
    Rows out;         // stays as long as rows may be copied to it

    Read(std::shared_ptr<RowReader> from, std::shared_ptr<RowRead> started, nb::object of, Rows to)
        : reader(std::move(from)), read(std::move(started)), file(std::move(of)), out(std::move(to)) {}
    ~Read() {
        nb::gil_scoped_release released;  // who copies rows right now may take a while
        reader->give_up(*read);
    }
    Read(const Read&) = delete;
};

Read* start(nb::object self, int64_t base, Positions positions, Checksums checksums, Rows out) {
    const File& from = nb::cast<const File&>(self);
    const size_t count = positions.shape(0);
    check(out.shape(0) == count && int64_t(out.shape(1)) == from.file.row_bytes, "out is [positions, row_bytes]");
    std::vector<int64_t> rows(positions.data(), positions.data() + count);
    std::vector<uint32_t> sums(count);
    for (size_t i = 0; i < count; i++) {
        check(rows[i] >= 0 && size_t(rows[i]) < checksums.shape(0), "a checksum for every row");
        check(i == 0 || rows[i] > rows[i - 1], "positions ascend");
        sums[i] = checksums.data()[rows[i]];
    }
    std::shared_ptr<RowRead> read;
    {
        nb::gil_scoped_release released;
        read = from.reader->start(from.file, base, std::move(rows), std::move(sums), out.data());
    }
    return new Read(from.reader, std::move(read), std::move(self), std::move(out));
}

// Calls `step` until it is true; Ctrl-C is heard in between.
template <typename Step>
void until(Step step) {
    while (true) {
        bool done;
        {
            nb::gil_scoped_release released;
            done = step();
        }
        if (done) return;
        if (PyErr_CheckSignals()) throw nb::python_error();
    }
}

Ranks ready(Read& self) {
    until([&] { return self.reader->ready(*self.read); });
    auto* ranks = new std::vector<int64_t>(self.reader->take(*self.read));
    nb::capsule owner(ranks, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
    return Ranks(ranks->data(), {ranks->size()}, owner);
}

bool finish(Read& self) {
    until([&] { return self.reader->finish(*self.read); });
    return !self.read->error && self.read->bad.empty();
}

nb::object failure(const Read& self) {
    const RowRead& read = *self.read;
    if (!read.error) return nb::none();
    return nb::make_tuple(read.error == RowRead::kTooShort ? 0 : read.error, read.failed_first, read.failed_last);
}

}  // namespace

void bind_rows(nb::module_& m) {
    nb::class_<Reader>(m, "RowReader", "Reads rows of files, many at once.")
        .def("__init__",
             [](Reader* self, const std::string& engine, size_t depth, size_t arena_bytes, size_t request_bytes,
                int64_t gap_bytes) {
                 check(depth > 0 && depth <= 4096, "depth is 1 to 4096");
                 check(request_bytes > 0 && request_bytes <= arena_bytes && gap_bytes >= 0, "a request fits the arena");
                 auto made = std::make_shared<RowReader>(
                     ReaderSettings{engine, depth, arena_bytes, request_bytes, gap_bytes});
                 new (self) Reader{std::move(made)};
             },
             "engine"_a = "auto", "depth"_a = 512, "arena_bytes"_a = 8 << 20, "request_bytes"_a = 1 << 17,
             "gap_bytes"_a = 1 << 14)
        .def_prop_ro("engine", [](const Reader& self) { return std::string(self.reader->engine()); })
        .def_prop_ro("refused", [](const Reader& self) { return self.reader->refused(); },
                     "Why io_uring is not in use; empty where it is, or was not asked for.")
        .def_prop_ro("fixed_buffers", [](const Reader& self) { return self.reader->fixed_buffers(); })
        .def("pump", [](const Reader& self) { self.reader->pump(); }, nb::call_guard<nb::gil_scoped_release>(),
             "Take in what has arrived and start what waits.")
        .def("disturb", [](const Reader& self, double delay, size_t every, int32_t result) {
                 self.reader->disturb(delay, every, result);
             }, "delay"_a = 0.0, "every"_a = 0, "result"_a = 0, nb::call_guard<nb::gil_scoped_release>(),
             "For tests: requests take ``delay`` seconds longer, and every ``every``-th ends with ``result``.")
        .def("close", [](const Reader& self) { self.reader->close(); }, nb::call_guard<nb::gil_scoped_release>());
    nb::class_<File>(m, "RowFile", "A file of rows, as a reader knows it.")
        .def(nb::init<const Reader&, int, int64_t, int64_t>(), "reader"_a, "fd"_a, "row_bytes"_a, "alignment"_a)
        .def("start", &start, "base"_a, "positions"_a, "checksums"_a, "out"_a,
             "Start reading the rows of ascending positions, of which row 0 is at ``base``, into out.");
    nb::class_<Read>(m, "RowRead", "Rows on their way. Dropped, it is given up: nothing is written to out any more.")
        .def_prop_ro("requests", [](const Read& self) { return self.read->windows.size(); })
        .def_prop_ro("nbytes", [](const Read& self) {
                 int64_t sum = 0;
                 for (const Window& window : self.read->windows) sum += window.length;
                 return sum;
             }, "Bytes asked of the file: the rows, gaps between them, and what alignment adds.")
        .def("ready", &ready,
             "Ranks int64 of rows that have arrived since the last call, each one checked; waits for one at least. "
             "None: the read is over.")
        .def("finish", &finish, "Wait until the read is over; whether every row is in out, as it was written.")
        .def_prop_ro("failure", &failure,
                     "(errno, first, last position) of the first request that failed; errno 0: the file is too short.")
        .def_prop_ro("bad", [](const Read& self) { return self.read->bad; },
                     "Positions of rows that are not what was written.");
}
