// Scoring with NEON and its dot product of bytes (Armv8.2, FEAT_DotProd): 16 multiply-adds an instruction.
#include "variant.h"

#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include "neon.inl"

namespace hillinfer {

static bool supported() {
#if defined(__linux__)
    constexpr unsigned long kDotProduct = 1 << 20;  // HWCAP_ASIMDDP
    return getauxval(AT_HWCAP) & kDotProduct;
#else
    return true;  // every Mac with an Arm has it
#endif
}

const Variant kDotprod{"dotprod", supported, score, logits, weigh, accumulate, count_from, range, collect, read_words,
                       multiply_steps};

}  // namespace hillinfer
