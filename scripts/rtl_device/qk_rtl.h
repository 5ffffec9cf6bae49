// The kernel's RTL, as Verilator compiled it, as a library: a card of one compute unit, without memory of its own.
//
// What a caller does with it is what a driver does with a card: register memory, write the control registers, let it
// run, read them. Time passes only inside these functions, one clock cycle after the other; a launch that nobody runs
// stands still. The kernel reaches the memory that was mapped, and nothing else: an access outside is answered with
// DECERR, as on a card (the register axi_error shows it), and qk_rtl_fault names the first of them.
//
// Each qk_rtl is a device of its own. qk_rtl_map and qk_rtl_unmap may be called from any thread at any time, while it
// runs too; all other calls on one device come from one thread at a time. Nothing here throws or ends the process.
#pragma once

#include <stdint.h>

#define QK_RTL_VERSION 1  // of this interface

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_rtl qk_rtl;

enum {
  QK_RTL_DONE = 0,     // a launch is finished and its ap_done not yet acknowledged
  QK_RTL_IDLE = 1,     // nothing runs, nothing is queued, nothing is to be acknowledged
  QK_RTL_RUNNING = 2,  // the cycles that were allowed are over
};

// What is fixed when the library is built: this interface, the kernel's ABI (QK_ABI_VERSION of hls/qk_abi.h), and the
// byte offsets of its control registers by the arguments' names, "control" (offset 0) and "axi_error"; -1: no such name.
int qk_rtl_version(void);
int qk_rtl_abi_version(void);
int qk_rtl_register(const char *name);

// A device that has been reset and is idle; null without memory.
qk_rtl *qk_rtl_open(void);
void qk_rtl_close(qk_rtl *device);

// How its memory behaves: beats of a read come `latency` cycles after its address, and in each cycle each channel of
// each AXI port, the answers to writes included, stands still with a probability (0 to 0.99) drawn from `seed`. Without
// this call memory never waits.
void qk_rtl_stalls(qk_rtl *device, double probability, unsigned latency, uint64_t seed);

// Let the kernel reach `memory` at address … address + nbytes − 1. Returns 0, or −1 when that overlaps what is mapped or
// nbytes is 0 or exceeds the address space. The memory stays the caller's, until qk_rtl_unmap has returned; −1 where
// nothing was mapped at this address.
int qk_rtl_map(qk_rtl *device, uint64_t address, void *memory, uint64_t nbytes, int writable);
int qk_rtl_unmap(qk_rtl *device, uint64_t address);

// One access to a control register at a byte offset (docs/kernel.md; ap_ctrl_chain at 0). It takes a few cycles, in
// which a launch goes on. Offsets that are no register are ignored, and read 0.
void qk_rtl_write(qk_rtl *device, uint32_t offset, uint32_t value);
uint32_t qk_rtl_read(qk_rtl *device, uint32_t offset);

// Let time pass until a launch is finished (QK_RTL_DONE, at once when one is already), nothing is left to do, or
// most_cycles are over.
int qk_rtl_run(qk_rtl *device, uint64_t most_cycles);

// Clock cycles since the device was opened.
uint64_t qk_rtl_cycles(const qk_rtl *device);

// A whole launch of an idle device: registers, start, run, acknowledge. addresses: query, keys, exps, blocks; scalars:
// n_tokens, first_token, shape, format, min_score, tag. Returns QK_RTL_DONE or, after most_cycles, QK_RTL_RUNNING; then
// only qk_rtl_reset makes it idle again. cycles: from the start to the end. axi_error: that register, 0 when all is well.
int qk_rtl_launch(qk_rtl *device, const uint64_t addresses[4], const int32_t scalars[6], uint64_t most_cycles,
                  uint64_t *cycles, uint32_t *axi_error);

// The first access outside mapped memory since the last call of this function or qk_rtl_reset, in words; null: none.
// The text lasts until the next call on this device.
const char *qk_rtl_fault(qk_rtl *device);

// What a card's reset does: whatever runs is forgotten, registers are as after qk_rtl_open; mapped memory stays.
void qk_rtl_reset(qk_rtl *device);

#ifdef __cplusplus
}
#endif
