// Python's side of the thread pool, and of what several threads do for benchmarks.
#pragma once

#include <nanobind/nanobind.h>

void bind_pool(nanobind::module_& m);
