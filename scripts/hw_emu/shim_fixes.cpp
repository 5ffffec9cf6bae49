// Calls of XRT's hw_emu shim that would hold the host up, mended by being loaded before libc (LD_PRELOAD).
//
// sleep: the shim sleeps where a card would interrupt: sleep(10) for the scheduler's own configuration, and sleep(10)
// in a thread that closing waits for. From there it takes a thousandth of the time.
// pthread_cond_clockwait: the shim's scheduler can miss that a launch was queued, and looks again after 20 ms. After one.
// read: when the device process has died, the shim reads from its socket again and again, for ever. It gets the answers
// of a card that has fallen off the bus instead: launches are over at once, nothing is written, nothing is read.
// munmap: p2p buffers are unmapped when they are freed, and again when a card is closed, those of other cards with them:
// by then something else may lie there. The second time is left out.
// puts, printf: the shim tells of its scheduler on stdout, where a program's own output is.

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/types.h>

namespace {

// The headers of calls and answers, and the calls whose answers have required fields: messages.py and wire.py.
constexpr size_t kCallHeader = 14, kAnswerHeader = 9;
constexpr size_t kApiAt = 10;
constexpr unsigned char kAllocate = 4, kFromDevice = 7, kReadRegisters = 11;

struct Answer {
    unsigned char size;
    unsigned char bytes[8];
};
constexpr Answer kNo = {2, {0x08, 0}};
constexpr Answer kYes = {2, {0x08, 1}};
constexpr Answer kNoData = {4, {0x08, 0, 0x12, 0}};
constexpr Answer kDone = {8, {0x08, 1, 0x12, 4, 6, 0, 0, 0}};  // AP_DONE and AP_IDLE

thread_local unsigned char last_call = 0;  // a thread that has asked waits for the answer

const Answer &answer() {
    return last_call == kReadRegisters ? kDone : last_call == kFromDevice ? kNoData : last_call == kAllocate ? kNo : kYes;
}

bool from_shim(const void *caller, const char *function = nullptr) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libxrt_hwemu") &&
           (!function || (info.dli_sname && strstr(info.dli_sname, function)));
}

}  // namespace

extern "C" unsigned sleep(unsigned seconds) {
    timespec time = {static_cast<time_t>(seconds), 0};
    if (from_shim(__builtin_return_address(0)))
        time = {seconds / 1000, seconds % 1000 * 1000000L};
    return nanosleep(&time, &time) ? static_cast<unsigned>(time.tv_sec) + (time.tv_nsec > 0) : 0;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                      const timespec *end) {
    using Wait = int (*)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const timespec *);
    static const Wait next = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
    if (!from_shim(__builtin_return_address(0)))
        return next(condition, mutex, clock, end);
    timespec soon;
    clock_gettime(clock, &soon);
    soon.tv_nsec += 1000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    return next(condition, mutex, clock, &soon);
}

extern "C" ssize_t write(int descriptor, const void *memory, size_t size) {
    using Write = ssize_t (*)(int, const void *, size_t);
    static const Write next = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "write"));
    if (size == kCallHeader && from_shim(__builtin_return_address(0)))
        last_call = static_cast<const unsigned char *>(memory)[kApiAt];
    return next(descriptor, memory, size);
}

extern "C" ssize_t read(int descriptor, void *memory, size_t size) {
    using Read = ssize_t (*)(int, void *, size_t);
    static const Read next = reinterpret_cast<Read>(dlsym(RTLD_NEXT, "read"));
    const ssize_t got = next(descriptor, memory, size);
    if (got > 0 || !size || (got < 0 && errno != ECONNRESET) || !from_shim(__builtin_return_address(0)))
        return got;
    if (size == kAnswerHeader) {
        const uint64_t length = answer().size;
        *static_cast<unsigned char *>(memory) = 0x09;
        memcpy(static_cast<unsigned char *>(memory) + 1, &length, sizeof length);
        return kAnswerHeader;
    }
    if (size == answer().size) {
        memcpy(memory, answer().bytes, size);
        return static_cast<ssize_t>(size);
    }
    errno = ECONNRESET;  // the socket on which the device would call the host
    return -1;
}

extern "C" int munmap(void *memory, size_t size) {
    using Unmap = int (*)(void *, size_t);
    static const Unmap next = reinterpret_cast<Unmap>(dlsym(RTLD_NEXT, "munmap"));
    const void *caller = __builtin_return_address(0);
    if (from_shim(caller, "xclClose") || from_shim(caller, "resetProgram"))
        return 0;
    return next(memory, size);
}

extern "C" int puts(const char *text) {
    using Puts = int (*)(const char *);
    static const Puts next = reinterpret_cast<Puts>(dlsym(RTLD_NEXT, "puts"));
    return from_shim(__builtin_return_address(0)) ? 0 : next(text);
}

extern "C" int __printf_chk(int, const char *format, ...) {  // what printf is when it is compiled with checks
    if (from_shim(__builtin_return_address(0)))
        return 0;
    va_list arguments;
    va_start(arguments, format);
    const int written = vprintf(format, arguments);
    va_end(arguments);
    return written;
}
