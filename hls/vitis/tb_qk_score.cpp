// Testbench of Vitis's own C simulation and co-simulation: runs the launches of a stimulus file one after another and
// compares every byte of the Score Blocks with those in the file, which the NumPy model computed.
//
//   tb_qk_score STIMULI        exit code 0 when all are alike; `python -m scripts.vitis stimuli` writes the file
//
// The file, little-endian: "QKSTIM1\n", uint32 launches; then for each launch int32 n_tokens, first_token, shape,
// format, min_score, tag; uint32 beats of query, keys, exps, blocks; and the beats of these four, 64 bytes each.

#include <ap_int.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

typedef ap_uint<512> beat_t;

extern "C" void qk_score(const beat_t *query, const beat_t *keys, const beat_t *exps, beat_t *blocks, int n_tokens,
                         int first_token, int shape, int format, int min_score, int tag);

namespace {

const char kMagic[] = "QKSTIM1\n";
const int kWords = 16;  // of 32 bits in a beat
// Co-simulation copies as many beats as the kernel's m_axi ports have for `depth`, whatever a launch uses.
const unsigned kBeats = 4096;
const uint32_t kGuard = 0xEEEEEEEEu;

struct Header {
  int32_t n_tokens, first_token, shape, format, min_score, tag;
  uint32_t query, keys, exps, blocks;
};

bool get(FILE *file, void *to, size_t size) { return std::fread(to, 1, size, file) == size; }

// A buffer of kBeats: `count` beats from the file, then guard beats that the kernel must neither use nor change.
bool get_beats(FILE *file, unsigned count, std::vector<beat_t> &beats) {
  if (count > kBeats) return false;
  for (unsigned i = 0; i < kBeats; i++) {
    uint32_t words[kWords];
    for (int w = 0; w < kWords; w++) words[w] = kGuard;
    if (i < count && !get(file, words, sizeof words)) return false;
    beat_t beat = 0;
    for (int w = 0; w < kWords; w++) beat.range(32 * w + 31, 32 * w) = words[w];
    beats.push_back(beat);
  }
  return true;
}

uint32_t word(const beat_t &beat, int w) {
  ap_uint<32> value = beat.range(32 * w + 31, 32 * w);
  return value.to_uint();
}

// The number of 32-bit words that differ; the first one is printed.
unsigned differences(const std::vector<beat_t> &found, const std::vector<beat_t> &expected, unsigned launch) {
  unsigned count = 0;
  for (unsigned i = 0; i < kBeats; i++) {
    for (int w = 0; w < kWords; w++) {
      if (word(found[i], w) == word(expected[i], w)) continue;
      if (count++ == 0)
        std::printf("launch %u: beat %u, byte %d: %08x, expected %08x\n", launch, i, 4 * w, word(found[i], w),
                    word(expected[i], w));
    }
  }
  return count;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::printf("usage: tb_qk_score STIMULI\n");
    return 2;
  }
  FILE *file = std::fopen(argv[1], "rb");
  if (!file) {
    std::printf("%s cannot be opened\n", argv[1]);
    return 2;
  }
  char magic[sizeof kMagic - 1];
  uint32_t launches = 0;
  if (!get(file, magic, sizeof magic) || std::memcmp(magic, kMagic, sizeof magic) != 0 ||
    !get(file, &launches, sizeof launches) || launches == 0) {
    std::printf("%s is not a stimulus file\n", argv[1]);
    return 2;
  }
  unsigned wrong = 0;
  for (uint32_t launch = 0; launch < launches; launch++) {
    Header h;
    std::vector<beat_t> query, keys, exps, expected, blocks(kBeats);
    if (!get(file, &h, sizeof h) || !get_beats(file, h.query, query) || !get_beats(file, h.keys, keys) ||
      !get_beats(file, h.exps, exps) || !get_beats(file, h.blocks, expected)) {
      std::printf("launch %u of %s is cut off, or larger than %u beats\n", launch, argv[1], kBeats);
      return 2;
    }
    for (unsigned i = 0; i < kBeats; i++) blocks[i] = expected[kBeats - 1];  // guard beats
    qk_score(query.data(), keys.data(), exps.data(), blocks.data(), h.n_tokens, h.first_token, h.shape, h.format,
                 h.min_score, h.tag);
    if (differences(blocks, expected, launch)) wrong++;
  }
  std::fclose(file);
  std::printf("%u launches, %u wrong\n", launches, wrong);
  return wrong ? 1 : 0;
}
