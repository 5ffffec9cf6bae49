#include "bind_pool.h"

#include <nanobind/ndarray.h>

#include "slices.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hillinfer;

void bind_pool(nb::module_& m) {
    nb::class_<ThreadPool>(m, "ThreadPool", "Threads that share the work of a call; the caller is one of them.")
        .def("__init__",
             [](ThreadPool* self, int threads) {
                 if (threads < 1) throw nb::value_error("a pool has at least 1 thread");
                 new (self) ThreadPool(threads);
             },
             "threads"_a = 1)
        .def_prop_ro("threads", &ThreadPool::threads)
        .def("read_words",
             [](ThreadPool& pool, nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> words,
                bool parts) {
                 if (words.size() % 8) throw nb::value_error("words are a multiple of 8");
                 nb::gil_scoped_release released;
                 return read_words(pool, reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8, parts);
             },
             "words"_a, "parts"_a = false,
             "The sum of words uint64 [8·n]: how fast memory can be read, in order or four parts of 64 KiB at once.");
    m.def("multiply_steps",
          [](size_t rounds) {
              nb::gil_scoped_release released;
              return variant().multiply_steps(rounds);
          },
          "rounds"_a, "Multiplies 64 bytes of INT8 keys with queries, again and again; returns how many products.");
}
