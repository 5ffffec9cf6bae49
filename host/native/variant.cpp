#include "variant.h"

#include <atomic>
#include <cstring>

namespace hillinfer {

const std::vector<const Variant*>& variants() {
    static const std::vector<const Variant*> all = [] {
        std::vector<const Variant*> found;
        for (const Variant* candidate : {
#ifdef HILLINFER_X86
                 &kAvx512, &kAvx2,
#elif defined(HILLINFER_ARM)
                 &kDotprod, &kNeon,
#endif
                 &kPortable})
            if (candidate->supported()) found.push_back(candidate);
        return found;
    }();
    return all;
}

static std::atomic<const Variant*>& current() {
    static std::atomic<const Variant*> chosen{variants().front()};
    return chosen;
}

const Variant& variant() { return *current().load(std::memory_order_relaxed); }

bool use_variant(const char* name) {
    for (const Variant* candidate : variants())
        if (!std::strcmp(candidate->name, name)) {
            current() = candidate;
            return true;
        }
    return false;
}

}  // namespace hillinfer
