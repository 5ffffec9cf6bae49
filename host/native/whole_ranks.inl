// Ranks of tokens as integers, for instruction sets that cannot round each product as they like. Before it: scaled, the
// low 32 bits of dot·m >> shift, 0 ≤ shift ≤ 32.

namespace {

using Ranks = Ints;

inline Ranks rank(Ints dot, const hillinfer::Scale& scale) { return scaled(dot, scale.m, scale.shift) - scale.o; }
inline Ranks larger(Ranks a, Ranks b) { return a > b ? a : b; }
inline Ints whole(Ranks ranks) { return ranks; }

}  // namespace
