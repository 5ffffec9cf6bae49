// The part of Vitis's ap_int that the kernel uses, for plain g++ and clang: same widths, same signs, same bits.
//
// Differences are refusals, so that what compiles here compiles with Vitis and with the open RTL flow and means the
// same: no comparison between a signed and an unsigned number, no implicit way back to a C integer, no division, no
// arithmetic beyond 128 bits. Little-endian machines only, as the kernel's memory layout is.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ap_int.h: beats are read byte by byte, little end first");

#define AP_INLINE inline __attribute__((always_inline))

namespace ap {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

constexpr int larger(int a, int b) { return a > b ? a : b; }

// Arithmetic that wraps as hardware does: in unsigned integers, wide enough not to be promoted to int.
template <int Bits> struct wrapping { typedef uint32_t type; };
template <> struct wrapping<64> { typedef uint64_t type; };
template <> struct wrapping<128> { typedef uint128 type; };

// The narrowest C integer that holds W bits; 0 stands for "an array of words".
constexpr int container_bits(int w) { return w <= 8 ? 8 : w <= 16 ? 16 : w <= 32 ? 32 : w <= 64 ? 64 : w <= 128 ? 128 : 0; }
template <int Bits, bool Signed> struct container;
template <> struct container<8, true> { typedef int8_t type; };
template <> struct container<8, false> { typedef uint8_t type; };
template <> struct container<16, true> { typedef int16_t type; };
template <> struct container<16, false> { typedef uint16_t type; };
template <> struct container<32, true> { typedef int32_t type; };
template <> struct container<32, false> { typedef uint32_t type; };
template <> struct container<64, true> { typedef int64_t type; };
template <> struct container<64, false> { typedef uint64_t type; };
template <> struct container<128, true> { typedef int128 type; };
template <> struct container<128, false> { typedef uint128 type; };

// Keeps the low W bits of a C integer, and extends the sign if there is one.
template <int W, bool Signed, class T> AP_INLINE typename container<container_bits(W), Signed>::type wrap(T value) {
  constexpr int bits = container_bits(W);
  typedef typename container<bits, Signed>::type result;
  typedef typename container<bits, false>::type pattern;
  constexpr int spare = bits - W;
  return (result)((result)((pattern)((pattern)value << spare)) >> spare);
}

template <int W, bool Signed, bool Wide = (W > 128)> class base;
template <int W, bool Signed> class slice;

// ------------------------------------------------------------------------------------------- numbers of <= 128 bits
template <int W, bool Signed> class base<W, Signed, false> {
 public:
  typedef typename container<container_bits(W), Signed>::type value_type;
  static const int width = W;
  static const bool is_signed = Signed;
  value_type value;

  base() = default;
  template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
  AP_INLINE base(T v) : value(wrap<W, Signed>(v)) {}
  // A number that fits is copied as it is: the test is a constant.
  template <int V, bool S> AP_INLINE base(const base<V, S, false> &other)
      : value((S == Signed ? V <= W : !S && V < W) ? (value_type)other.value : wrap<W, Signed>(other.value)) {}
  template <int V, bool S> AP_INLINE base(const base<V, S, true> &other)
      : value(wrap<W, Signed>(W <= 64 ? other.bits(0, W <= 64 ? W : 64) : other.bits128())) {}
  template <int V, bool S> AP_INLINE base(const slice<V, S> &part) : value(wrap<W, Signed>(part.bits())) {}
  static AP_INLINE base wrapped(value_type v) { base b; b.value = v; return b; }

  AP_INLINE uint64_t bits(int low, int count) const {
    static_assert(W <= 64, "ap_int.h: take slices of numbers of up to 64 bits, or of more than 128");
    return ((uint64_t)value >> low) & (~(uint64_t)0 >> (64 - count));
  }
  AP_INLINE void set_bits(int low, int count, uint64_t v) {
    static_assert(W <= 64, "ap_int.h: set slices of numbers of up to 64 bits, or of more than 128");
    const uint64_t mask = (~(uint64_t)0 >> (64 - count)) << low;
    value = wrap<W, Signed>(((uint64_t)value & ~mask) | ((v << low) & mask));
  }
  AP_INLINE slice<W, Signed> range(int high, int low) { return slice<W, Signed>(*this, high, low); }
  AP_INLINE const slice<W, Signed> range(int high, int low) const { return slice<W, Signed>(*this, high, low); }
  AP_INLINE bool operator[](int bit) const { return (value >> bit) & 1; }

  AP_INLINE int to_int() const { return (int)value; }
  AP_INLINE unsigned to_uint() const { return (unsigned)value; }
  explicit AP_INLINE operator bool() const { return value != 0; }
};

// ------------------------------------------------------------------------------- bit vectors of more than 128 bits
template <int W, bool Signed> class base<W, Signed, true> {
  static_assert(!Signed, "ap_int.h: numbers of more than 128 bits are bit vectors: make them ap_uint");

 public:
  static const int width = W;
  static const bool is_signed = false;
  static const int words = (W + 63) / 64;
  uint64_t word[words];

  base() = default;
  template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type> AP_INLINE base(T v) {
    for (int i = 1; i < words; i++) word[i] = v < T(0) ? ~(uint64_t)0 : 0;
    word[0] = (uint64_t)v;
    clear_spare();
  }
  template <int V, bool S> AP_INLINE base(const base<V, S, false> &other) : base(other.value) {}
  template <int V, bool S> AP_INLINE base(const base<V, S, true> &other) {
    for (int i = 0; i < words; i++) word[i] = i < base<V, S, true>::words ? other.word[i] : 0;
    clear_spare();
  }
  template <int V, bool S> AP_INLINE base(const slice<V, S> &part) { part.copy_to(*this); }

  // Whole bytes, half words and words are loaded as such, so that a loop over lanes becomes vector instructions.
  // Divisions, because a compiler knows that 8·i / 8 is i.
  AP_INLINE uint64_t bits(int low, int count) const {
    const unsigned char *bytes = (const unsigned char *)word;
    if (low % 8 + count <= 8 || (count <= 4 && low % 4 == 0)) return (bytes[low / 8] >> low % 8) & (0xffu >> (8 - count));
    if (count == 16 && low % 16 == 0) { uint16_t v; std::memcpy(&v, bytes + low / 8, 2); return v; }
    if (count == 32 && low % 32 == 0) { uint32_t v; std::memcpy(&v, bytes + low / 8, 4); return v; }
    uint64_t v = word[low >> 6] >> (low & 63);
    if ((low & 63) + count > 64) v |= word[(low >> 6) + 1] << (64 - (low & 63));
    return v & (~(uint64_t)0 >> (64 - count));
  }
  AP_INLINE uint128 bits128() const { return (uint128)word[1] << 64 | word[0]; }
  AP_INLINE void set_bits(int low, int count, uint64_t v) {
    unsigned char *bytes = (unsigned char *)word;
    if (count == 16 && (low & 15) == 0) { const uint16_t x = (uint16_t)v; std::memcpy(bytes + (low >> 3), &x, 2); return; }
    if (count == 32 && (low & 31) == 0) { const uint32_t x = (uint32_t)v; std::memcpy(bytes + (low >> 3), &x, 4); return; }
    const uint64_t mask = ~(uint64_t)0 >> (64 - count);
    uint64_t &first = word[low >> 6];
    first = (first & ~(mask << (low & 63))) | ((v & mask) << (low & 63));
    const int in_first = 64 - (low & 63);
    if (count > in_first) {
      uint64_t &second = word[(low >> 6) + 1];
      second = (second & ~(mask >> in_first)) | ((v & mask) >> in_first);
    }
  }
  AP_INLINE slice<W, Signed> range(int high, int low) { return slice<W, Signed>(*this, high, low); }
  AP_INLINE const slice<W, Signed> range(int high, int low) const { return slice<W, Signed>(*this, high, low); }
  AP_INLINE bool operator[](int bit) const { return (word[bit >> 6] >> (bit & 63)) & 1; }

  AP_INLINE base operator~() const {
    base result;
    for (int i = 0; i < words; i++) result.word[i] = ~word[i];
    result.clear_spare();
    return result;
  }
  AP_INLINE base operator>>(int count) const {
    base result;
    for (int i = 0; i < words; i++) {
      const int from = i + (count >> 6);
      const uint64_t low = from < words ? word[from] : 0, high = from + 1 < words ? word[from + 1] : 0;
      result.word[i] = (count & 63) == 0 ? low : low >> (count & 63) | high << (64 - (count & 63));
    }
    return result;
  }

 private:
  AP_INLINE void clear_spare() { if (W % 64 != 0) word[words - 1] &= ~(uint64_t)0 >> (64 - W % 64); }
};

// ------------------------------------------------------------------------------------------------- x.range(high, low)
template <int W, bool Signed> class slice {
 public:
  AP_INLINE slice(const base<W, Signed> &of, int high, int low)
      : of_(const_cast<base<W, Signed> &>(of)), low_(low), count_(high - low + 1) {}
  slice(const slice &) = default;

  AP_INLINE uint64_t bits() const { return of_.bits(low_, count_); }
  template <int V> AP_INLINE void copy_to(base<V, false, true> &to) const {
    for (int i = 0; i < base<V, false, true>::words; i++) {
      const int left = count_ - 64 * i;
      to.word[i] = left > 0 ? of_.bits(low_ + 64 * i, left < 64 ? left : 64) : 0;
    }
  }
  template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
  AP_INLINE slice &operator=(T v) { of_.set_bits(low_, count_, (uint64_t)v); return *this; }
  template <int V, bool S> AP_INLINE slice &operator=(const base<V, S, false> &v) {
    of_.set_bits(low_, count_, (uint64_t)v.value);
    return *this;
  }
  template <int V> AP_INLINE slice &operator=(const base<V, false, true> &v) {
    for (int i = 0; 64 * i < count_; i++) {
      const int left = count_ - 64 * i;
      of_.set_bits(low_ + 64 * i, left < 64 ? left : 64, i < base<V, false, true>::words ? v.word[i] : 0);
    }
    return *this;
  }
  slice &operator=(const slice &) = delete;

 private:
  base<W, Signed> &of_;
  const int low_, count_;
};

// -------------------------------------------------------------------------------------------------------- operators
// Widths are Vitis's: a sum has one bit more than its wider operand, a product the bits of both.
#define AP_BINARY(op, result_width, result_signed)                                                                   \
  template <int A, bool S, int B, bool T>                                                                            \
  AP_INLINE auto operator op(const base<A, S, false> &x, const base<B, T, false> &y) {                               \
    constexpr int a = A + (!S && T), b = B + (!T && S);                                                              \
    constexpr int w = (result_width) + 0 * (a + b);                                                                  \
    static_assert(w <= 128, "ap_int.h: arithmetic on more than 128 bits");                                           \
    typedef base<w, (result_signed)> result;                                                                         \
    typedef typename wrapping<container_bits(w) < 32 ? 32 : container_bits(w)>::type work;                           \
    return result::wrapped(wrap<w, (result_signed)>((work)x.value op (work)y.value));                                \
  }
AP_BINARY(+, larger(a, b) + 1, S || T)
AP_BINARY(-, larger(a, b) + 1, true)
AP_BINARY(*, A + B, S || T)
AP_BINARY(&, larger(a, b), S || T)
AP_BINARY(|, larger(a, b), S || T)
AP_BINARY(^, larger(a, b), S || T)
#undef AP_BINARY

#define AP_COMPARE(op)                                                                                               \
  template <int A, bool S, int B, bool T>                                                                            \
  AP_INLINE bool operator op(const base<A, S, false> &x, const base<B, T, false> &y) {                               \
    static_assert(S == T, "ap_int.h: comparison of a signed with an unsigned number");                               \
    return x.value op y.value;                                                                                       \
  }
AP_COMPARE(==)
AP_COMPARE(!=)
AP_COMPARE(<)
AP_COMPARE(>)
AP_COMPARE(<=)
AP_COMPARE(>=)
#undef AP_COMPARE

// The ap number that a C integer counts as.
template <class T> using like = base<std::is_same<T, bool>::value ? 1 : 8 * (int)sizeof(T), std::is_signed<T>::value>;

#define AP_MIXED(op)                                                                                                 \
  template <int A, bool S, class T, class = typename std::enable_if<std::is_integral<T>::value>::type>               \
  AP_INLINE auto operator op(const base<A, S, false> &x, T y) { return x op like<T>(y); }                            \
  template <int A, bool S, class T, class = typename std::enable_if<std::is_integral<T>::value>::type>               \
  AP_INLINE auto operator op(T x, const base<A, S, false> &y) { return like<T>(x) op y; }
AP_MIXED(+)
AP_MIXED(-)
AP_MIXED(*)
AP_MIXED(&)
AP_MIXED(|)
AP_MIXED(^)
AP_MIXED(==)
AP_MIXED(!=)
AP_MIXED(<)
AP_MIXED(>)
AP_MIXED(<=)
AP_MIXED(>=)
#undef AP_MIXED

// A shift keeps the width of what is shifted, as in Vitis; >> of a signed number is arithmetic.
template <int A, bool S> AP_INLINE base<A, S> operator<<(const base<A, S, false> &x, int count) {
  typedef typename wrapping<container_bits(A) < 32 ? 32 : container_bits(A)>::type work;
  return base<A, S>::wrapped(wrap<A, S>((work)x.value << count));
}
template <int A, bool S> AP_INLINE base<A, S> operator>>(const base<A, S, false> &x, int count) {
  return base<A, S>::wrapped((typename base<A, S>::value_type)(x.value >> count));
}
template <int A, bool S, int B> AP_INLINE base<A, S> operator<<(const base<A, S, false> &x, const base<B, false> &count) {
  return x << (int)count.value;
}
template <int A, bool S, int B> AP_INLINE base<A, S> operator>>(const base<A, S, false> &x, const base<B, false> &count) {
  return x >> (int)count.value;
}

template <int A, bool S> AP_INLINE base<A + 1, true> operator-(const base<A, S, false> &x) {
  typedef base<A + 1, true> result;
  typedef typename wrapping<container_bits(A + 1) < 32 ? 32 : container_bits(A + 1)>::type work;
  return result::wrapped(wrap<A + 1, true>((work)0 - (work)x.value));
}
template <int A, bool S> AP_INLINE base<A, S> operator~(const base<A, S, false> &x) {
  return base<A, S>::wrapped(wrap<A, S>(~x.value));
}

}  // namespace ap

template <int W> struct ap_int : ap::base<W, true> {
  using ap::base<W, true>::base;
  ap_int() = default;
  template <int V, bool S> AP_INLINE ap_int(const ap::base<V, S> &other) : ap::base<W, true>(other) {}
};
template <int W> struct ap_uint : ap::base<W, false> {
  using ap::base<W, false>::base;
  ap_uint() = default;
  template <int V, bool S> AP_INLINE ap_uint(const ap::base<V, S> &other) : ap::base<W, false>(other) {}
};
