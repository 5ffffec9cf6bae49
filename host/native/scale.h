// From dot products to what ranks: saturate24((dot·m) >> shift) − o (kernel.md, "What it computes").
#pragma once

#include <memory>
#include <vector>

#include "keys.h"

namespace hillinfer {

// For one query under one exponent.
struct Scale {
    int32_t bias;  // of the dot product as the layout gives it
    int32_t m, shift, o;
    float factor, offset;  // m·2^−shift and o, exactly
    bool plain;            // shift ≤ 32, 0 ≤ m < 2^24, and no logit leaves 24 bits
};

// What a head of a tile is scored with.
struct Head {
    const Scale* scales;  // [group]
    float cast;           // 2^exponent
    bool usual;           // all scales are plain, and the maximum is asked for
};

// The scales of every head under each exponent, made when a tile first has it: few tiles have one of their own.
class Scales {
  public:
    explicit Scales(const Query& query);
    ~Scales();
    Scales(const Scales&) = delete;

    // [active] of a tile with these exponents [heads], until it is called again.
    const Head* of_tile(const int8_t* exponents);

  private:
    void make(size_t a, int exponent);

    const Query& query_;
    std::unique_ptr<Scale[]> scales_;  // [exponent][active][group]
    std::vector<Head> made_;           // [exponent][active]
    std::vector<Head> tile_;
};

}  // namespace hillinfer
