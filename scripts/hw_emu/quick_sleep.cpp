// sleep() for programs that run on the emulated card: XRT's hw_emu shim sleeps where a card would interrupt.
//
// Its first wait, for the scheduler's own configuration, is sleep(10), and closing waits for a thread in another
// sleep(10). Calls from libxrt_hwemu take a thousandth of their time; all others are as long as ever.

#include <cstring>
#include <ctime>

#include <dlfcn.h>

extern "C" unsigned sleep(unsigned seconds) {
    Dl_info caller;
    timespec time = {static_cast<time_t>(seconds), 0};
    if (dladdr(__builtin_return_address(0), &caller) && caller.dli_fname && strstr(caller.dli_fname, "libxrt_hwemu"))
        time = {seconds / 1000, seconds % 1000 * 1000000L};
    return nanosleep(&time, &time) ? static_cast<unsigned>(time.tv_sec) + (time.tv_nsec > 0) : 0;
}
