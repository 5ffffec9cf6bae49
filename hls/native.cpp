// The kernel as a shared library: the C simulation, and the reference that Python loads.
#define QK_EXPORT extern "C" __attribute__((visibility("default")))

#include "types.h"

// Declared before the kernel defines it, so that its source needs no word about visibility.
QK_EXPORT void qk_score(const beat_t *query, const beat_t *keys, const beat_t *exps, beat_t *blocks, int n_tokens,
                        int first_token, int shape, int format, int min_score, int tag);

#include "qk_score.cpp"

QK_EXPORT int qk_abi_version() { return QK_ABI_VERSION; }

#ifdef HLS_COMPAT
// Streams of this thread's next launches hold at least so many elements; 0: exactly their depth in hardware.
QK_EXPORT void qk_least_depth(unsigned elements) { hls::least_depth() = elements; }

// What went wrong in this thread's last launch (a deadlock, elements left in a stream), or null.
QK_EXPORT const char *qk_fault() { return hls::fault().empty() ? nullptr : hls::fault().c_str(); }
#endif
