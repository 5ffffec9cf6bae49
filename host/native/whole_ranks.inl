// Ranks of tokens as integers, for instruction sets that cannot round each product as they like. Before it: scaled, the
// low 32 bits of dot·m >> shift, 0 ≤ shift ≤ 32.

namespace {

class Ranking {
  public:
    using Ranks = Ints;

    explicit Ranking(const hillinfer::Query& query) : query_(query), shifts_(query.m.size()) {}

    void set(size_t a, int exponent) {
        const size_t first = a * query_.group;
        for (size_t at = first; at < first + query_.group; at++) shifts_[at] = query_.r[at] + exponent;
    }

    Ranks rank(Ints dot, size_t at) const { return scaled(dot, query_.m[at], shifts_[at]) - query_.o[at]; }
    static Ranks larger(Ranks a, Ranks b) { return a > b ? a : b; }
    static Ints whole(Ranks ranks) { return ranks; }

  private:
    const hillinfer::Query& query_;
    std::vector<int32_t> shifts_;  // [active][group]
};

}  // namespace
