#pragma once

#include <nanobind/nanobind.h>

// RowReader, RowFile and RowRead for Python.
void bind_rows(nanobind::module_& m);
