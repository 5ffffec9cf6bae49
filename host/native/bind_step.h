#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "arrays.h"
#include "keys.h"
#include "variant.h"

// First token, tokens, tiles in the scanning layout, exponents [tiles][heads].
using RunArguments = std::tuple<int64_t, int64_t, hillinfer::In<uint8_t, 2>, hillinfer::In<int8_t, 2>>;

void check_tiles(const hillinfer::Query& query, const hillinfer::In<uint8_t, 2>& tiles,
                 const hillinfer::In<int8_t, 2>& exponents, size_t count);
hillinfer::RowShape make_shape(int heads, int group, int dim, const std::string& element, size_t row_bytes);
void bind_step(hillinfer::nb::module_& m);
