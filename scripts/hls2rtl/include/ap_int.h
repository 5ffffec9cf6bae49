// ap_int and ap_uint for the RTL flow: one value is one LLVM integer of its own width.
//
// The project's native headers hold words of 64 bits, because g++ has no _BitInt in C++; here every variable must
// be a single iN of LLVM's, for the flow to see its width. Both follow the rules of Vitis's ap_int.h:
//   a + b, a - b   one bit wider than the wider operand (an unsigned beside a signed one counts one more);
//                  a difference is signed
//   a * b          as wide as both together
//   a & b, |, ^    as wide as the wider operand
//   a << n, a >> n as wide as a; a shift of the width or more gives 0 (or the sign)
//
// Bare _BitInt values are never passed to or returned from a function: the calling convention would cut those of 65 to
// 128 bits into two registers, and LLVM would see two integers instead of one.
#pragma once
#pragma GCC system_header  // its warnings are not the user's

namespace hls2rtl {

template <bool C, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool C, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };

// The built-in integers: how wide, and whether signed.
template <class I> struct builtin { static constexpr int width = 0; };
template <> struct builtin<bool> { static constexpr int width = 1; static constexpr bool is_signed = false; };
#define HLS2RTL_BUILTIN(TYPE, SIGNED) \
  template <> struct builtin<TYPE> { static constexpr int width = 8 * sizeof(TYPE); static constexpr bool is_signed = SIGNED; }
HLS2RTL_BUILTIN(char, true);
HLS2RTL_BUILTIN(signed char, true);
HLS2RTL_BUILTIN(unsigned char, false);
HLS2RTL_BUILTIN(short, true);
HLS2RTL_BUILTIN(unsigned short, false);
HLS2RTL_BUILTIN(int, true);
HLS2RTL_BUILTIN(unsigned, false);
HLS2RTL_BUILTIN(long, true);
HLS2RTL_BUILTIN(unsigned long, false);
HLS2RTL_BUILTIN(long long, true);
HLS2RTL_BUILTIN(unsigned long long, false);
#undef HLS2RTL_BUILTIN
template <class I, class R = void> using if_builtin = typename enable_if<(builtin<I>::width > 0), R>::type;

template <int W, bool S> struct integer { typedef unsigned _BitInt(W) type; };
template <int W> struct integer<W, true> { typedef signed _BitInt(W) type; };
template <> struct integer<1, true> { typedef unsigned _BitInt(1) type; };  // refused below: there is no such type

constexpr int wider(int a, int b) { return a > b ? a : b; }

}  // namespace hls2rtl

template <int W, bool S> struct ap_int_base;
template <int W> struct ap_int;
template <int W> struct ap_uint;

template <int W, bool S> struct ap_range_ref;

template <int W, bool S> struct ap_int_base {
  static_assert(W > 0 && W <= 4096, "[width] an integer has 1 to 4096 bits");
  static_assert(W > 1 || !S, "[width] a signed integer has 2 bits at least");
  static constexpr int width = W;
  static constexpr bool is_signed = S;
  typedef unsigned _BitInt(W) word;
  typedef typename hls2rtl::integer<W, S>::type value_type;  // the same bits, with their sign

  word raw;

  ap_int_base() = default;
  // Written out so that values are passed in memory, not cut into registers.
  ap_int_base(const ap_int_base &x) : raw(x.raw) {}
  ap_int_base &operator=(const ap_int_base &x) { raw = x.raw; return *this; }
  template <class I, class = hls2rtl::if_builtin<I>> ap_int_base(I x) : raw((word)x) {}
  template <int M, bool Q> ap_int_base(const ap_int_base<M, Q> &x) : raw((word)(typename ap_int_base<M, Q>::value_type)x.raw) {}
  template <int M, bool Q> ap_int_base(const ap_range_ref<M, Q> &x) : raw((word)x.get().raw) {}
  ap_int_base(float) { refuse_float<int>(); }
  ap_int_base(double) { refuse_float<int>(); }

  static ap_int_base from_bits(const word &bits) { ap_int_base r; r.raw = bits; return r; }

  ap_range_ref<W, S> range(int hi, int lo) { return {*this, hi, lo}; }
  ap_range_ref<W, S> operator()(int hi, int lo) { return {*this, hi, lo}; }
  ap_range_ref<W, S> operator[](int i) { return {*this, i, i}; }
  ap_int_base<W, false> range(int hi, int lo) const { return slice(hi, lo); }
  ap_int_base<W, false> operator()(int hi, int lo) const { return slice(hi, lo); }
  bool operator[](int i) const { return (bool)((raw >> i) & 1); }
  bool test(int i) const { return (*this)[i]; }
  bool get_bit(int i) const { return (*this)[i]; }
  void set_bit(int i, bool b) { (*this)[i] = b; }
  int length() const { return W; }

  int to_int() const { return (int)(value_type)raw; }
  unsigned to_uint() const { return (unsigned)(value_type)raw; }
  long long to_int64() const { return (long long)(value_type)raw; }
  unsigned long long to_uint64() const { return (unsigned long long)(value_type)raw; }
  bool to_bool() const { return raw != 0; }
  bool is_zero() const { return raw == 0; }
  bool or_reduce() const { return raw != 0; }
  bool and_reduce() const { return raw == (word)~(word)0; }
  bool xor_reduce() const {
    bool parity = false;
    for (int i = 0; i < W; i++) {
#pragma HLS UNROLL
      parity ^= (*this)[i];
    }
    return parity;
  }

  explicit operator bool() const { return raw != 0; }
  template <class I, class = hls2rtl::if_builtin<I>, class = void> explicit operator I() const { return (I)(value_type)raw; }

  bool operator!() const { return raw == 0; }
  ap_int_base<W, S> operator~() const { return from_bits((word)~raw); }
  ap_int_base<W, S> operator+() const { return *this; }
  ap_int_base<W + 1, true> operator-() const { return ap_int_base<W + 1, true>::from_bits((unsigned _BitInt(W + 1))(-(signed _BitInt(W + 1))(value_type)raw)); }

  template <class X> ap_int_base &operator+=(const X &x) { return *this = *this + x; }
  template <class X> ap_int_base &operator-=(const X &x) { return *this = *this - x; }
  template <class X> ap_int_base &operator*=(const X &x) { return *this = *this * x; }
  template <class X> ap_int_base &operator/=(const X &x) { return *this = *this / x; }
  template <class X> ap_int_base &operator%=(const X &x) { return *this = *this % x; }
  template <class X> ap_int_base &operator&=(const X &x) { return *this = *this & x; }
  template <class X> ap_int_base &operator|=(const X &x) { return *this = *this | x; }
  template <class X> ap_int_base &operator^=(const X &x) { return *this = *this ^ x; }
  template <class X> ap_int_base &operator<<=(const X &x) { return *this = *this << x; }
  template <class X> ap_int_base &operator>>=(const X &x) { return *this = *this >> x; }
  ap_int_base &operator++() { return *this += 1; }
  ap_int_base &operator--() { return *this -= 1; }
  ap_int_base operator++(int) { ap_int_base old = *this; *this += 1; return old; }
  ap_int_base operator--(int) { ap_int_base old = *this; *this -= 1; return old; }

 private:
  template <class T> static void refuse_float() { static_assert(sizeof(T) == 0, "[float] there are no floating-point values here"); }
  ap_int_base<W, false> slice(int hi, int lo) const {
    return ap_int_base<W, false>::from_bits((word)((word)(raw >> lo) & (word)((word)~(word)0 >> (W - 1 - (hi - lo)))));
  }
};

// x.range(hi, lo), x(hi, lo) and x[i]: a part that can be read and assigned.
template <int W, bool S> struct ap_range_ref {
  typedef unsigned _BitInt(W) word;
  ap_int_base<W, S> &whole;
  int hi, lo;

  ap_int_base<W, false> get() const {
    const word mask = (word)~(word)0 >> (W - 1 - (hi - lo));
    return ap_int_base<W, false>::from_bits((word)((word)(whole.raw >> lo) & mask));
  }
  void put(const word &x) {
    const word mask = (word)~(word)0 >> (W - 1 - (hi - lo));
    whole.raw = (word)((word)(whole.raw & (word)~(word)(mask << lo)) | (word)((word)(x & mask) << lo));
  }

  operator ap_int_base<W, false>() const { return get(); }
  operator bool() const { return get().raw != 0; }
  int to_int() const { return get().to_int(); }
  unsigned to_uint() const { return get().to_uint(); }
  unsigned long long to_uint64() const { return get().to_uint64(); }
  int length() const { return hi - lo + 1; }

  ap_range_ref &operator=(const ap_range_ref &x) { put(x.get().raw); return *this; }
  template <class I, class = hls2rtl::if_builtin<I>> ap_range_ref &operator=(I x) { put((word)x); return *this; }
  template <int M, bool Q> ap_range_ref &operator=(const ap_int_base<M, Q> &x) {
    put((word)(typename ap_int_base<M, Q>::value_type)x.raw);
    return *this;
  }
  template <int M, bool Q> ap_range_ref &operator=(const ap_range_ref<M, Q> &x) { put((word)x.get().raw); return *this; }
};

template <int W> struct ap_int : ap_int_base<W, true> {
  typedef ap_int_base<W, true> base;
  using base::base;
  ap_int() = default;
  ap_int(const base &x) : base(x) {}
  static ap_int from_bits(const typename base::word &bits) { return base::from_bits(bits); }
};
template <int W> struct ap_uint : ap_int_base<W, false> {
  typedef ap_int_base<W, false> base;
  using base::base;
  ap_uint() = default;
  ap_uint(const base &x) : base(x) {}
  static ap_uint from_bits(const typename base::word &bits) { return base::from_bits(bits); }
};

// A built-in integer beside an ap_int counts as an ap_int of its own width and sign.
template <class I, class = hls2rtl::if_builtin<I>> using ap_of = ap_int_base<hls2rtl::builtin<I>::width, hls2rtl::builtin<I>::is_signed>;

#define HLS2RTL_VALUE(WIDTH, SIGNED, x) ((typename ap_int_base<WIDTH, SIGNED>::value_type)(x).raw)

// Parts of a word count as unsigned integers.
#define HLS2RTL_PARTS(RESULT, OP)                                                                            \
  template <int W, bool S, int M, bool Q>                                                                    \
  inline RESULT operator OP(const ap_range_ref<W, S> &a, const ap_int_base<M, Q> &b) { return ap_int_base<W, false>(a) OP b; } \
  template <int W, bool S, int M, bool Q>                                                                    \
  inline RESULT operator OP(const ap_int_base<W, S> &a, const ap_range_ref<M, Q> &b) { return a OP ap_int_base<M, false>(b); } \
  template <int W, bool S, int M, bool Q>                                                                    \
  inline RESULT operator OP(const ap_range_ref<W, S> &a, const ap_range_ref<M, Q> &b) {                      \
    return ap_int_base<W, false>(a) OP ap_int_base<M, false>(b);                                             \
  }                                                                                                          \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline RESULT operator OP(const ap_range_ref<W, S> &a, I b) { return ap_int_base<W, false>(a) OP b; }      \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline RESULT operator OP(I a, const ap_range_ref<W, S> &b) { return a OP ap_int_base<W, false>(b); }

// n and m: the operands' widths once an unsigned operand beside a signed one has room for a sign.
#define HLS2RTL_BINARY(OP, WIDTH, SIGNED)                                                                    \
  template <int W, bool S, int M, bool Q>                                                                    \
  inline auto operator OP(const ap_int_base<W, S> &a, const ap_int_base<M, Q> &b) {                          \
    constexpr int n = W + (!S && Q), m = M + (!Q && S);                                                      \
    (void)n, (void)m;                                                                                        \
    typedef ap_int_base<(WIDTH), (SIGNED)> R;                                                                \
    typedef signed _BitInt((WIDTH) + 1) wide;                                                                \
    return R::from_bits((typename R::word)((wide)HLS2RTL_VALUE(W, S, a) OP (wide)HLS2RTL_VALUE(M, Q, b)));                             \
  }                                                                                                          \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline auto operator OP(const ap_int_base<W, S> &a, I b) { return a OP ap_of<I>(b); }                      \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline auto operator OP(I a, const ap_int_base<W, S> &b) { return ap_of<I>(a) OP b; }                      \
  HLS2RTL_PARTS(auto, OP)
HLS2RTL_BINARY(+, hls2rtl::wider(n, m) + 1, S || Q)
HLS2RTL_BINARY(-, hls2rtl::wider(n, m) + 1, true)
HLS2RTL_BINARY(*, W + M, S || Q)
HLS2RTL_BINARY(/, W + (Q ? 1 : 0), S || Q)
HLS2RTL_BINARY(%, hls2rtl::wider(n, m), S)
HLS2RTL_BINARY(&, hls2rtl::wider(n, m), S || Q)
HLS2RTL_BINARY(|, hls2rtl::wider(n, m), S || Q)
HLS2RTL_BINARY(^, hls2rtl::wider(n, m), S || Q)

// The signs must agree: C++ would convert a signed operand to unsigned, Vitis would compare the values.
#define HLS2RTL_COMPARE(OP)                                                                                  \
  template <int W, bool S, int M, bool Q>                                                                    \
  inline bool operator OP(const ap_int_base<W, S> &a, const ap_int_base<M, Q> &b) {                          \
    static_assert(S == Q, "[mixed-sign] a signed and an unsigned integer are compared: cast one of them");   \
    typedef signed _BitInt(hls2rtl::wider(W, M) + 1) wide;                                                   \
    return (wide)HLS2RTL_VALUE(W, S, a) OP (wide)HLS2RTL_VALUE(M, Q, b);                                     \
  }                                                                                                          \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline bool operator OP(const ap_int_base<W, S> &a, I b) { return a OP ap_of<I>(b); }                      \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline bool operator OP(I a, const ap_int_base<W, S> &b) { return ap_of<I>(a) OP b; }                      \
  HLS2RTL_PARTS(bool, OP)
HLS2RTL_COMPARE(==)
HLS2RTL_COMPARE(!=)
HLS2RTL_COMPARE(<)
HLS2RTL_COMPARE(>)
HLS2RTL_COMPARE(<=)
HLS2RTL_COMPARE(>=)
#undef HLS2RTL_PARTS
#undef HLS2RTL_BINARY
#undef HLS2RTL_COMPARE

// Shifts by the width or more give 0 or the sign; a negative amount shifts the other way, as in Vitis.
namespace hls2rtl {
template <int W, bool S, class N> inline ap_int_base<W, S> shift_left(const ap_int_base<W, S> &a, const N &n) {
  typedef typename ap_int_base<W, S>::word word;
  return ap_int_base<W, S>::from_bits(n >= W ? (word)0 : (word)(a.raw << n));
}
template <int W, bool S, class N> inline ap_int_base<W, S> shift_right(const ap_int_base<W, S> &a, const N &n) {
  typedef typename ap_int_base<W, S>::word word;
  typedef typename ap_int_base<W, S>::value_type value_type;
  const word beyond = S ? (word)((value_type)a.raw >> (W - 1)) : (word)0;
  return ap_int_base<W, S>::from_bits(n >= W ? beyond : (word)((value_type)a.raw >> n));
}
}  // namespace hls2rtl
#define HLS2RTL_SHIFT(OP, FORWARD, BACKWARD)                                                                 \
  template <int W, bool S, class I, class = hls2rtl::if_builtin<I>>                                          \
  inline ap_int_base<W, S> operator OP(const ap_int_base<W, S> &a, I n) {                                    \
    if (hls2rtl::builtin<I>::is_signed && n < 0) return hls2rtl::BACKWARD(a, -(unsigned long long)n);        \
    return hls2rtl::FORWARD(a, (unsigned long long)n);                                                       \
  }                                                                                                          \
  template <int W, bool S, int M>                                                                            \
  inline ap_int_base<W, S> operator OP(const ap_int_base<W, S> &a, const ap_int_base<M, false> &n) {         \
    return hls2rtl::FORWARD(a, (unsigned _BitInt(hls2rtl::wider(M, 13)))n.raw);                              \
  }                                                                                                          \
  template <int W, bool S, int M>                                                                            \
  inline ap_int_base<W, S> operator OP(const ap_int_base<W, S> &a, const ap_int_base<M, true> &n) {          \
    typedef signed _BitInt(hls2rtl::wider(M, 13) + 1) amount;                                                \
    amount by = (amount)HLS2RTL_VALUE(M, true, n);                                                                           \
    return by < 0 ? hls2rtl::BACKWARD(a, (amount)-by) : hls2rtl::FORWARD(a, by);                             \
  }                                                                                                          \
  template <int W, bool S, int M, bool Q>                                                                    \
  inline ap_int_base<W, S> operator OP(const ap_int_base<W, S> &a, const ap_range_ref<M, Q> &n) {            \
    return a OP ap_int_base<M, false>(n);                                                                    \
  }                                                                                                          \
  template <int W, bool S, class X>                                                                          \
  inline ap_int_base<W, false> operator OP(const ap_range_ref<W, S> &a, const X &n) {                        \
    return ap_int_base<W, false>(a) OP n;                                                                    \
  }
HLS2RTL_SHIFT(<<, shift_left, shift_right)
HLS2RTL_SHIFT(>>, shift_right, shift_left)
#undef HLS2RTL_SHIFT
#undef HLS2RTL_VALUE
