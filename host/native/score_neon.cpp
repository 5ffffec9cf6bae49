// Scoring with NEON, which every 64-bit Arm has.
#include "variant.h"

#include "neon.inl"

namespace hillinfer {

const Variant kNeon{"neon", [] { return true; }, score, logits, weigh, accumulate, count_from, range, collect, read_words,
                    multiply_steps};

}  // namespace hillinfer
