// Feeds all kernels of a batch at once and compares what comes out with the same C++ run natively.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "Vbatch.h"
#include "programs.cpp"
#include "verilated.h"

typedef hls::stream<ap_uint<64> > words_t;
struct Program {
  const char *name;
  void (*run)(words_t &, words_t &, unsigned, int, int);
  unsigned extra;
};
struct Launch {
  unsigned n;
  int a, b;
};
#include "table.h"

static std::vector<uint64_t> stimulus(unsigned count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> words(count);
  for (uint64_t &word : words) {
    word = random();
    switch (random() % 8) {  // many small and extreme values
      case 0: word &= 0xff; break;
      case 1: word = ~(uint64_t)0; break;
      case 2: word = 0; break;
      case 3: word |= (uint64_t)0x8000800080008000; break;
    }
  }
  return words;
}

static std::vector<uint64_t> native(const Program &program, const Launch &launch, const std::vector<uint64_t> &in) {
  std::vector<uint64_t> result;
  hls::least_depth() = 1 << 16;
  words_t source("in"), sink("out");
  hls::least_depth() = 0;
  for (uint64_t word : in) source.write(ap_uint<64>(word));
  program.run(source, sink, launch.n, launch.a, launch.b);
  if (!hls::fault().empty()) std::printf("%s: %s\n", program.name, hls::fault().c_str());
  while (!sink.empty()) result.push_back((uint64_t)sink.read().value);
  return result;
}

struct Side {
  std::vector<uint64_t> in, expected;
  std::size_t given = 0, taken = 0;
  bool offering = false, finished = false;
};

static int run(Vbatch &top, const Launch &launch, double offer, double take, unsigned seed) {
  std::mt19937 random(seed);
  auto chance = [&](double p) { return random() < p * 4294967296.0; };
  std::vector<Side> sides(kPrograms);
  for (unsigned k = 0; k < kPrograms; k++) {
    sides[k].in = stimulus(launch.n + kTable[k].extra, seed + 77 * k);
    sides[k].expected = native(kTable[k], launch, sides[k].in);
    top.n[k] = launch.n, top.a[k] = launch.a, top.b[k] = launch.b;
  }
  auto cycle = [&] {
    top.clock = 0;
    top.eval();
    top.clock = 1;
    top.eval();
  };
  top.start = (kPrograms == 64 ? ~(uint64_t)0 : ((uint64_t)1 << kPrograms) - 1);
  top.in_valid = top.out_ready = 0;
  cycle();
  top.start = 0;
  unsigned finished = 0, bad = 0, quiet = 0;
  for (unsigned long long clock = 0; quiet < 20000 && (finished < kPrograms || quiet < 200); clock++, quiet++) {
    uint64_t valid = 0, ready = 0;
    for (unsigned k = 0; k < kPrograms; k++) {
      Side &side = sides[k];
      if (!side.offering && side.given < side.in.size() && chance(offer)) side.offering = true;
      if (side.offering) valid |= (uint64_t)1 << k, top.in_data[k] = side.in[side.given];
      if (chance(take)) ready |= (uint64_t)1 << k;
    }
    top.in_valid = valid, top.out_ready = ready;
    top.clock = 0;
    top.eval();
    for (unsigned k = 0; k < kPrograms; k++) {
      Side &side = sides[k];
      if (valid >> k & top.in_ready >> k & 1) side.given++, side.offering = false, quiet = 0;
      if (ready >> k & top.out_valid >> k & 1) {
        const bool more = side.taken < side.expected.size();
        if ((!more || top.out_data[k] != side.expected[side.taken]) && bad++ < 10)
          std::printf("%s(n=%u, a=%d, b=%d): element %zu is %016llx, natively %s%016llx\n", kTable[k].name, launch.n,
                      launch.a, launch.b, side.taken, (unsigned long long)top.out_data[k], more ? "" : "none ",
                      more ? (unsigned long long)side.expected[side.taken] : 0ull);
        side.taken++, quiet = 0;
      }
      if (top.done >> k & 1) {
        if (side.finished) std::printf("%s: done twice\n", kTable[k].name), bad++;
        side.finished = true, finished++, quiet = 0;
      }
    }
    top.clock = 1;
    top.eval();
  }
  for (unsigned k = 0; k < kPrograms; k++) {
    const Side &side = sides[k];
    if (side.finished && side.taken == side.expected.size() && side.given == side.in.size()) continue;
    bad++;
    std::printf("%s(n=%u, a=%d, b=%d): %s, read %zu of %zu, wrote %zu of %zu\n", kTable[k].name, launch.n, launch.a,
                launch.b, side.finished ? "done" : "not done", side.given, side.in.size(), side.taken,
                side.expected.size());
  }
  return bad;
}

int main() {
  VerilatedContext context;
  const std::unique_ptr<Vbatch> top(new Vbatch(&context));
  top->reset = 1, top->start = 0, top->in_valid = 0, top->out_ready = 0;
  for (int i = 0; i < 4; i++) {
    top->clock = 0, top->eval();
    top->clock = 1, top->eval();
  }
  top->reset = 0;
  unsigned bad = 0, seed = 1;
  const double rates[][2] = {{1, 1}, {0.5, 0.5}, {1, 0.1}, {0.1, 1}};
  for (const Launch &launch : kLaunches)
    for (const double *rate : rates) bad += run(*top, launch, rate[0], rate[1], seed++);
  std::printf("%u kernels, %u differences\n", kPrograms, bad);
  return bad != 0;
}
