// Ranks of tokens as integers, for instruction sets that cannot round each product as they like. Before it: scaled, the
// low 32 bits of dot·m >> shift, 0 ≤ shift ≤ 32, and larger.

namespace {

class Ranking {
  public:
    using Ranks = Dots;

    explicit Ranking(const hillinfer::Query& query) : query_(query), shifts_(query.m.size()) {}

    void set(size_t a, int exponent) {
        const size_t first = a * query_.group;
        for (size_t at = first; at < first + query_.group; at++) shifts_[at] = query_.r[at] + exponent;
    }

    Ranks rank(const Dots& dot, size_t at) const { return scaled(dot, query_.m[at], shifts_[at]) - query_.o[at]; }
    static Ranks least() { return as<Ranks>(Ints{} + INT32_MIN); }
    static Ranks larger(const Ranks& a, const Ranks& b) { return ::larger(a, b); }
    static Ints whole(const Ranks& ranks) { return as<Ints>(ranks); }

  private:
    const hillinfer::Query& query_;
    std::vector<int32_t> shifts_;  // [active][group]
};

}  // namespace
