// hls::stream for the RTL flow. A stream is one volatile cell and every access to it is one transfer of a FIFO:
// a volatile load is a blocking read, a volatile store is a blocking write. The depth is carried by the type.
#pragma once
#pragma GCC system_header  // its warnings are not the user's
#include "ap_int.h"

namespace hls {

template <int DEPTH> struct stream_depth { char depth[DEPTH]; };
template <> struct stream_depth<0> {};

template <class T, int DEPTH = 0> class stream {
 public:
  stream() {}
  explicit stream(const char *) {}
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  T read() {
    const typename T::word bits = cell;
    return T::from_bits(bits);
  }
  void read(T &value) { value = read(); }
  void write(const T &value) { cell = value.raw; }
  void operator>>(T &value) { value = read(); }
  void operator<<(const T &value) { write(value); }

  // Whether a FIFO is empty depends on time, so the C++ cannot be the reference of the RTL.
  template <class U> bool read_nb(U &) { return refused<U>(); }
  template <class U> bool write_nb(const U &) { return refused<U>(); }
  template <class U = T> bool empty() const { return refused<U>(); }
  template <class U = T> bool full() const { return refused<U>(); }
  template <class U = T> unsigned size() const { return refused<U>(); }

 private:
  template <class U> static bool refused() {
    static_assert(sizeof(U) == 0, "[non-blocking] streams are read and written blocking only: read() and write()");
    return false;
  }
  volatile typename T::word cell;
  stream_depth<DEPTH> declared;
};

}  // namespace hls
