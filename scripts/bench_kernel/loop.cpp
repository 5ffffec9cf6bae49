// One launch of the kernel's RTL beside memory that never waits, as fast as Verilator runs it.
//
//   qk_score LATENCY QUERY KEYS EXPS BLOCKS BLOCKS_BYTES OFFSET=VALUE ...
//
// QUERY, KEYS and EXPS are files with the buffers' bytes, BLOCKS is the file for what the kernel writes. OFFSET=VALUE are
// the control registers to write; buffer i lies at address (i + 1) << 32. Memory answers a read LATENCY cycles after its
// address, and from then on with a beat in each cycle. Prints JSON; cycles count from the write of ap_start.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

namespace {

constexpr uint64_t kBeat = 64, kMostCycles = 100000000;
constexpr uint32_t kStart = 1, kGlobalInterrupt = 0x4, kInterruptEnable = 0x8;
using Bytes = std::vector<uint8_t>;

uint64_t now = 0;  // cycles simulated

Bytes read_file(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "%s at cycle %llu\n", what, static_cast<unsigned long long>(now));
  std::exit(1);
}

// Reads of one buffer: bursts that wait for their data.
class Reads {
 public:
  Reads(Bytes bytes, uint64_t base, unsigned latency) : bytes_(std::move(bytes)), base_(base), latency_(latency) {}

  void ask(uint64_t address, unsigned beats) {
    if (address < base_ || address + beats * kBeat > base_ + bytes_.size()) fail("read outside a buffer");
    bursts_.push_back({address - base_, beats, now + 1 + latency_});
  }
  bool valid() const { return !bursts_.empty() && bursts_.front().ready <= now; }
  const uint8_t *data() const { return &bytes_[bursts_.front().offset]; }
  bool last() const { return bursts_.front().beats == 1; }
  void take() {
    latest = now;
    Burst &burst = bursts_.front();
    burst.offset += kBeat;
    if (--burst.beats == 0) bursts_.pop_front();
  }

  uint64_t latest = 0;  // cycle of the last beat taken

 private:
  struct Burst {
    uint64_t offset;
    unsigned beats;
    uint64_t ready;
  };
  Bytes bytes_;
  uint64_t base_;
  unsigned latency_;
  std::deque<Burst> bursts_;
};

// The bundle of each input has its ports under a name of its own.
#define READ_INPUTS(top, n, reads)                                    \
  (top).m_axi_gmem##n##_ARREADY = 1;                                  \
  (top).m_axi_gmem##n##_RVALID = (reads).valid();                     \
  if ((reads).valid()) {                                              \
    std::memcpy(&(top).m_axi_gmem##n##_RDATA, (reads).data(), kBeat); \
    (top).m_axi_gmem##n##_RLAST = (reads).last();                     \
  }
#define READ_OUTPUTS(top, n, reads)                                                                  \
  if ((top).m_axi_gmem##n##_RVALID && (top).m_axi_gmem##n##_RREADY) (reads).take();                  \
  if ((top).m_axi_gmem##n##_ARVALID) (reads).ask((top).m_axi_gmem##n##_ARADDR, (top).m_axi_gmem##n##_ARLEN + 1u)

}  // namespace

int main(int argc, char **argv) {
  if (argc < 7) fail("too few arguments");
  const unsigned latency = std::strtoul(argv[1], nullptr, 0);
  Reads query(read_file(argv[2]), uint64_t(1) << 32, latency), keys(read_file(argv[3]), uint64_t(2) << 32, latency);
  Reads exps(read_file(argv[4]), uint64_t(3) << 32, latency);
  const uint64_t blocks_base = uint64_t(4) << 32;
  Bytes blocks(std::strtoull(argv[6], nullptr, 0), 0x55);
  std::deque<std::pair<uint32_t, uint32_t>> writes;  // control registers still to be written
  for (int i = 7; i < argc; i++) {
    char *value = std::strchr(argv[i], '=');
    if (!value) fail("expected OFFSET=VALUE");
    writes.emplace_back(std::strtoul(argv[i], nullptr, 0), std::strtoul(value + 1, nullptr, 0));
  }
  writes.emplace_back(kGlobalInterrupt, 1);
  writes.emplace_back(kInterruptEnable, 1);
  writes.emplace_back(0, kStart);

  VerilatedContext context;
  Vtop top(&context, "");
  std::deque<std::pair<uint64_t, unsigned>> write_bursts;  // address and beats to come
  uint64_t started = 0, last_write = 0, answers = 0;
  const auto clock_begin = std::chrono::steady_clock::now();
  for (top.ap_rst_n = 0;; now++) {
    if (now == kMostCycles) fail("not done");
    if (now == 10) top.ap_rst_n = 1;
    const bool control = now > 12 && !writes.empty();
    top.s_axi_control_AWVALID = top.s_axi_control_WVALID = control;
    if (control) {
      top.s_axi_control_AWADDR = writes.front().first;
      top.s_axi_control_WDATA = writes.front().second;
    }
    top.s_axi_control_WSTRB = 0xF;
    top.s_axi_control_BREADY = 1;
    READ_INPUTS(top, 0, query);
    READ_INPUTS(top, 1, keys);
    READ_INPUTS(top, 2, exps);
    top.m_axi_gmem3_AWREADY = top.m_axi_gmem3_WREADY = 1;
    top.m_axi_gmem3_BVALID = answers > 0;

    top.ap_clk = 0;
    top.eval();  // what the outputs of this cycle are
    const bool aw = top.s_axi_control_AWVALID && top.s_axi_control_AWREADY;
    const bool w = top.s_axi_control_WVALID && top.s_axi_control_WREADY;
    if (aw != w) fail("the control registers take address and data apart, which this loop does not do");
    READ_OUTPUTS(top, 0, query);
    READ_OUTPUTS(top, 1, keys);
    READ_OUTPUTS(top, 2, exps);
    if (top.m_axi_gmem3_BVALID && top.m_axi_gmem3_BREADY) answers--;
    if (top.m_axi_gmem3_AWVALID) write_bursts.emplace_back(top.m_axi_gmem3_AWADDR, top.m_axi_gmem3_AWLEN + 1u);
    if (top.m_axi_gmem3_WVALID) {
      if (write_bursts.empty()) fail("data before its address, which this loop does not take");
      auto &burst = write_bursts.front();
      if (burst.first < blocks_base || burst.first + kBeat > blocks_base + blocks.size()) fail("wrote outside blocks");
      std::memcpy(&blocks[burst.first - blocks_base], &top.m_axi_gmem3_WDATA, kBeat);
      burst.first += kBeat;
      if (--burst.second == 0) {
        write_bursts.pop_front();
        answers++;
      }
      last_write = now;
    }
    if (aw) {
      if (writes.front().first == 0) started = now;
      writes.pop_front();
    }
    if (started && top.__SYM__interrupt) break;
    top.ap_clk = 1;
    top.eval();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - clock_begin).count();
  std::ofstream(argv[5], std::ios::binary).write(reinterpret_cast<const char *>(blocks.data()), blocks.size());
  std::printf("{\"cycles\": %llu, \"latency_cycles\": %llu, \"cycles_per_s\": %.0f, \"seconds\": %.4f}\n",
              static_cast<unsigned long long>(now - started), static_cast<unsigned long long>(last_write - keys.latest),
              now / seconds, seconds);
  top.final();
}
