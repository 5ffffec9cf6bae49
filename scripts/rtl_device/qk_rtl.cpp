// qk_rtl.h over Verilator's model of the open flow's RTL: the clock, the control registers and four AXI memories.
#include "qk_rtl.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "Vtop.h"
#include "qk_abi.h"
#include "qk_registers.h"  // made from report.json by build.py: kRegisters, {name, offset}
#include "verilated.h"

#define QK_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint64_t kBeat = QK_BEAT_BYTES;
constexpr uint32_t kControl = 0, kStart = 1, kDone = 2, kIdle = 4, kReady = 8, kContinue = 16;
constexpr uint8_t kOkay = 0, kDecodeError = 3;
constexpr unsigned kResetCycles = 10;

// Memory that callers lend, by address. One lock for each beat: after unmap has returned nothing touches it any more.
class Memory {
 public:
  bool map(uint64_t address, uint8_t *bytes, uint64_t size, bool writable) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size == 0 || address + size - 1 < address) return false;
    const auto next = regions_.lower_bound(address);
    if (next != regions_.end() && next->first - address < size) return false;
    if (next != regions_.begin() && address - std::prev(next)->first < std::prev(next)->second.size) return false;
    regions_[address] = {bytes, size, writable};
    return true;
  }

  bool unmap(uint64_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return regions_.erase(address) == 1;
  }

  bool read(uint64_t address, void *beat) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint8_t *bytes = find(address, false);
    if (bytes) std::memcpy(beat, bytes, kBeat);
    return bytes;
  }

  bool write(uint64_t address, const void *beat) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint8_t *bytes = find(address, true);
    if (bytes) std::memcpy(bytes, beat, kBeat);
    return bytes;
  }

 private:
  struct Region {
    uint8_t *bytes;
    uint64_t size;
    bool writable;
  };

  uint8_t *find(uint64_t address, bool to_write) const {
    auto region = regions_.upper_bound(address);
    if (region == regions_.begin()) return nullptr;
    const auto &[start, found] = *--region;
    const uint64_t offset = address - start;
    if (offset >= found.size || found.size - offset < kBeat || (to_write && !found.writable)) return nullptr;
    return found.bytes + offset;
  }

  mutable std::mutex mutex_;
  std::map<uint64_t, Region> regions_;
};

// When a channel stands still: the same seed, the same cycles.
class Stalls {
 public:
  void set(double probability, unsigned latency, uint64_t seed) {
    below_ = static_cast<uint64_t>(std::clamp(probability, 0.0, 0.99) * 4294967296.0);
    latency_ = latency;
    state_ = seed * 0x9E3779B97F4A7C15u + 1;
  }
  unsigned latency() const { return latency_; }
  bool now() {
    if (!below_) return false;
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 32) < below_;
  }

 private:
  uint64_t below_ = 0, state_ = 1;
  unsigned latency_ = 0;
};

struct Burst {
  uint64_t address;
  unsigned beats;
  uint64_t ready;  // cycle from which its data may come
};

// What one read port has asked for, and the beat it is offered: held until it is taken, as AXI wants it.
struct Reads {
  std::deque<Burst> bursts;
  bool offered = false, address_ready = false;
  uint8_t response = kOkay;
  alignas(8) uint8_t beat[kBeat];
};

struct Writes {
  std::deque<Burst> bursts;
  std::deque<uint8_t> answers;
  bool address_ready = false, data_ready = false, offered = false;
  uint8_t response = kOkay;  // of the burst that is being written
};

}  // namespace

struct qk_rtl {
  qk_rtl() : top(&context, "") { reset(); }
  ~qk_rtl() { top.final(); }

  void reset() {
    for (Reads &port : reads) port = Reads();
    writes = Writes();
    top.s_axi_control_AWVALID = top.s_axi_control_WVALID = top.s_axi_control_ARVALID = 0;
    top.s_axi_control_WSTRB = 0xF;
    top.s_axi_control_BREADY = top.s_axi_control_RREADY = 1;
    top.ap_rst_n = 0;
    for (unsigned i = 0; i < kResetCycles; i++) cycle();
    top.ap_rst_n = 1;
    for (unsigned i = 0; i < 4; i++) cycle();
    told_ready = false;
    fault.clear();
  }

  void write_register(uint32_t offset, uint32_t value) {
    top.s_axi_control_AWADDR = offset;
    top.s_axi_control_WDATA = value;
    // The kernel takes address and data together (hls2rtl's control registers do), and in time.
    top.s_axi_control_AWVALID = top.s_axi_control_WVALID = 1;
    for (bool taken = false; !taken;) {
      settle();
      taken = top.s_axi_control_AWREADY && top.s_axi_control_WREADY;
      edge();
    }
    top.s_axi_control_AWVALID = top.s_axi_control_WVALID = 0;
  }

  uint32_t read_register(uint32_t offset) {
    top.s_axi_control_ARADDR = offset;
    top.s_axi_control_ARVALID = 1;
    for (bool taken = false; !taken;) {
      settle();
      taken = top.s_axi_control_ARREADY;
      edge();
    }
    top.s_axi_control_ARVALID = 0;
    for (;;) {
      settle();
      const bool valid = top.s_axi_control_RVALID;
      const uint32_t value = top.s_axi_control_RDATA;
      edge();
      if (valid) return value;
    }
  }

  // The control register is read all the while, which costs nothing here and needs no interrupt to be enabled.
  int run(uint64_t most_cycles) {
    const uint64_t end = most_cycles > UINT64_MAX - now ? UINT64_MAX : now + most_cycles;
    for (;;) {
      const uint32_t control = read_register(kControl);
      told_ready |= (control & kReady) != 0;
      if (control & kDone) return QK_RTL_DONE;
      if (control & kIdle) return QK_RTL_IDLE;
      if (now >= end) return QK_RTL_RUNNING;
    }
  }

  VerilatedContext context;
  Vtop top;
  Memory memory;
  Stalls stalls;
  Reads reads[3];
  Writes writes;
  uint64_t now = 0;
  bool told_ready = false;  // ap_ready was seen, and cleared, by run(): the caller has yet to see it
  std::string fault, told_fault;

 private:
  void cycle() {
    settle();
    edge();
  }

  // Present what memory has to say in this cycle, and let the outputs follow.
  void settle() {
    offer_read(reads[0]);
    offer_read(reads[1]);
    offer_read(reads[2]);
    writes.address_ready = !stalls.now();
    // Data is taken only behind its address: which the kernel sends first.
    writes.data_ready = !writes.bursts.empty() && !stalls.now();
    if (!writes.offered) writes.offered = !writes.answers.empty() && !stalls.now();
#define PRESENT(n)                                           \
  top.m_axi_gmem##n##_ARREADY = reads[n].address_ready;      \
  top.m_axi_gmem##n##_RVALID = reads[n].offered;             \
  if (reads[n].offered) {                                    \
    std::memcpy(&top.m_axi_gmem##n##_RDATA, reads[n].beat, kBeat); \
    top.m_axi_gmem##n##_RRESP = reads[n].response;           \
    top.m_axi_gmem##n##_RLAST = reads[n].bursts.front().beats == 1; \
  }
    PRESENT(0)
    PRESENT(1)
    PRESENT(2)
#undef PRESENT
    top.m_axi_gmem3_AWREADY = writes.address_ready;
    top.m_axi_gmem3_WREADY = writes.data_ready;
    top.m_axi_gmem3_BVALID = writes.offered;
    if (writes.offered) top.m_axi_gmem3_BRESP = writes.answers.front();
    top.ap_clk = 0;
    top.eval();
  }

  // Note what was handed over in this cycle, then the clock's rising edge.
  void edge() {
#define TAKE(n)                                                                   \
  if (reads[n].offered && top.m_axi_gmem##n##_RREADY) take_read(reads[n]);        \
  if (top.m_axi_gmem##n##_ARVALID && reads[n].address_ready)                      \
    reads[n].bursts.push_back({top.m_axi_gmem##n##_ARADDR & ~(kBeat - 1), top.m_axi_gmem##n##_ARLEN + 1u, \
                               now + 1 + stalls.latency()});
    TAKE(0)
    TAKE(1)
    TAKE(2)
#undef TAKE
    if (writes.offered && top.m_axi_gmem3_BREADY) {
      writes.answers.pop_front();
      writes.offered = false;
    }
    if (writes.data_ready && top.m_axi_gmem3_WVALID) take_write(&top.m_axi_gmem3_WDATA);
    if (top.m_axi_gmem3_AWVALID && writes.address_ready)
      writes.bursts.push_back({top.m_axi_gmem3_AWADDR & ~(kBeat - 1), top.m_axi_gmem3_AWLEN + 1u, 0});
    top.ap_clk = 1;
    top.eval();
    now++;
  }

  void offer_read(Reads &port) {
    port.address_ready = !stalls.now();
    if (port.offered || port.bursts.empty() || port.bursts.front().ready > now || stalls.now()) return;
    const uint64_t address = port.bursts.front().address;
    port.response = memory.read(address, port.beat) ? kOkay : kDecodeError;
    if (port.response != kOkay) {
      std::memset(port.beat, 0, kBeat);
      tell("reads", &port - reads, address);
    }
    port.offered = true;
  }

  void take_read(Reads &port) {
    Burst &burst = port.bursts.front();
    burst.address += kBeat;
    if (--burst.beats == 0) port.bursts.pop_front();
    port.offered = false;
  }

  void take_write(const void *beat) {
    Burst &burst = writes.bursts.front();
    if (!memory.write(burst.address, beat)) {
      writes.response = kDecodeError;
      tell("writes", 3, burst.address);
    }
    burst.address += kBeat;
    if (--burst.beats) return;
    writes.bursts.pop_front();
    writes.answers.push_back(writes.response);
    writes.response = kOkay;
  }

  void tell(const char *does, int port, uint64_t address) {
    static const char *const names[] = {"query", "keys", "exps", "blocks"};
    if (!fault.empty()) return;
    char text[120];
    std::snprintf(text, sizeof text, "the kernel %s %s at address 0x%llx, where it may not", does, names[port],
                  static_cast<unsigned long long>(address));
    fault = text;
  }
};

QK_EXPORT int qk_rtl_version(void) { return QK_RTL_VERSION; }

QK_EXPORT int qk_rtl_abi_version(void) { return QK_ABI_VERSION; }

QK_EXPORT int qk_rtl_register(const char *name) {
  for (const auto &each : kRegisters)
    if (std::strcmp(each.name, name) == 0) return each.offset;
  return -1;
}

QK_EXPORT qk_rtl *qk_rtl_open(void) {
  try {
    return new qk_rtl;
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

QK_EXPORT void qk_rtl_close(qk_rtl *device) { delete device; }

QK_EXPORT void qk_rtl_stalls(qk_rtl *device, double probability, unsigned latency, uint64_t seed) {
  device->stalls.set(probability, latency, seed);
}

QK_EXPORT int qk_rtl_map(qk_rtl *device, uint64_t address, void *memory, uint64_t nbytes, int writable) {
  return device->memory.map(address, static_cast<uint8_t *>(memory), nbytes, writable != 0) ? 0 : -1;
}

QK_EXPORT int qk_rtl_unmap(qk_rtl *device, uint64_t address) { return device->memory.unmap(address) ? 0 : -1; }

QK_EXPORT void qk_rtl_write(qk_rtl *device, uint32_t offset, uint32_t value) { device->write_register(offset, value); }

QK_EXPORT uint32_t qk_rtl_read(qk_rtl *device, uint32_t offset) {
  uint32_t value = device->read_register(offset);
  if (offset == kControl && device->told_ready) {
    value |= kReady;
    device->told_ready = false;
  }
  return value;
}

QK_EXPORT int qk_rtl_run(qk_rtl *device, uint64_t most_cycles) { return device->run(most_cycles); }

QK_EXPORT uint64_t qk_rtl_cycles(const qk_rtl *device) { return device->now; }

QK_EXPORT int qk_rtl_launch(qk_rtl *device, const uint64_t addresses[4], const int32_t scalars[6], uint64_t most_cycles,
                            uint64_t *cycles, uint32_t *axi_error) {
  static const char *const pointers[] = {"query", "keys", "exps", "blocks"};
  static const char *const numbers[] = {"n_tokens", "first_token", "shape", "format", "min_score", "tag"};
  for (int i = 0; i < 4; i++) {
    const uint32_t offset = qk_rtl_register(pointers[i]);
    device->write_register(offset, static_cast<uint32_t>(addresses[i]));
    device->write_register(offset + 4, static_cast<uint32_t>(addresses[i] >> 32));
  }
  for (int i = 0; i < 6; i++) device->write_register(qk_rtl_register(numbers[i]), scalars[i]);
  const uint64_t started = device->now;
  device->write_register(kControl, kStart);
  const int state = device->run(most_cycles);
  *cycles = device->now - started;
  *axi_error = device->read_register(qk_rtl_register("axi_error"));
  if (state == QK_RTL_DONE) device->write_register(kControl, kContinue);
  device->told_ready = false;
  return state;
}

QK_EXPORT const char *qk_rtl_fault(qk_rtl *device) {
  device->told_fault.swap(device->fault);
  device->fault.clear();
  return device->told_fault.empty() ? nullptr : device->told_fault.c_str();
}

QK_EXPORT void qk_rtl_reset(qk_rtl *device) { device->reset(); }
