// Arrays of Python: those that come in are C-contiguous and in this process's memory; new ones own what they hold.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <vector>

namespace hillinfer {

namespace nb = nanobind;

template <typename T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <typename T, int N>
using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <typename T, int N>
using New = nb::ndarray<nb::numpy, T, nb::ndim<N>>;

template <typename T, size_t N>
New<T, int(N)> give(std::vector<T> data, std::array<size_t, N> shape) {
    auto* owned = new std::vector<T>(std::move(data));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return New<T, int(N)>(owned->data(), N, shape.data(), owner);
}

// Disagreeing shapes are a mistake of the caller's code, not of a user's input.
inline void check(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

}  // namespace hillinfer
