// qk_score: scores cached keys against one step's queries, and writes Score Blocks. See docs/kernel.md.
//
//   query ── read_query ──┬─ parameters ───────────────────────┐
//                         └─ queries ────────────┐             │
//   keys ─── read_keys ──────── key_beats ─── multiply ─ sums ─ normalise ─ scores ─ compact ─┬─ tuples ── fill_slots
//   exps ─── read_exponents ─ expand_exponents ──┘                                            └─ trailers ──┘   │
//   blocks ────────────────────────────────────────────────────────── write_blocks ──────────── slot_beats ────┘
//
// Each process is one pipelined loop that takes and gives one element in each cycle. Each stream has one writer and one
// reader.
#include "dataflow.h"
#include "process/compact.h"
#include "process/expand_exponents.h"
#include "process/fill_slots.h"
#include "process/multiply.h"
#include "process/normalise.h"
#include "process/read_exponents.h"
#include "process/read_keys.h"
#include "process/read_query.h"
#include "process/write_blocks.h"

extern "C" void qk_score(const beat_t *query, const beat_t *keys, const beat_t *exps, beat_t *blocks, int n_tokens,
                         int first_token, int shape, int format, int min_score, int tag) {
// Keys: bursts of 4 KiB, the most that AXI allows, and 16 of them in flight, 64 KiB: eight times what DDR's latency
// asks for, in 16 block RAMs. depth is what co-simulation copies for each port, in beats.
#pragma HLS INTERFACE m_axi port=query bundle=gmem0 depth=4096 max_read_burst_length=64 num_read_outstanding=4
#pragma HLS INTERFACE m_axi port=keys bundle=gmem1 depth=4096 max_read_burst_length=64 num_read_outstanding=16
#pragma HLS INTERFACE m_axi port=exps bundle=gmem2 depth=4096 max_read_burst_length=16 num_read_outstanding=4
#pragma HLS INTERFACE m_axi port=blocks bundle=gmem3 depth=4096 max_write_burst_length=64 num_write_outstanding=4
#pragma HLS INTERFACE ap_ctrl_chain port=return
#pragma HLS DATAFLOW
  hls::stream<beat_t> parameters("parameters"), queries("queries"), key_beats("key_beats");
  hls::stream<beat_t> exponent_beats("exponent_beats");
  hls::stream<exponent_t> exponents("exponents");
  hls::stream<sums_t> sums("sums");
  hls::stream<score_t> scores("scores");
  hls::stream<beat_t> tuples("tuples"), trailers("trailers"), slot_beats("slot_beats");
#pragma HLS STREAM variable=parameters depth=2
#pragma HLS STREAM variable=queries depth=2
#pragma HLS STREAM variable=key_beats depth=2
#pragma HLS STREAM variable=exponent_beats depth=2
#pragma HLS STREAM variable=exponents depth=16
#pragma HLS STREAM variable=sums depth=16
#pragma HLS STREAM variable=scores depth=16
#pragma HLS STREAM variable=tuples depth=128
#pragma HLS STREAM variable=trailers depth=4
#pragma HLS STREAM variable=slot_beats depth=2
  DATAFLOW_REGION;
  PROCESS(read_query, query, parameters, queries, n_tokens, shape, format);
  PROCESS(read_keys, keys, key_beats, n_tokens, shape, format);
  PROCESS(read_exponents, exps, exponent_beats, n_tokens, shape, format);
  PROCESS(expand_exponents, exponent_beats, exponents, n_tokens, shape, format);
  PROCESS(multiply, queries, key_beats, exponents, sums, n_tokens, shape, format);
  PROCESS(normalise, parameters, sums, scores, n_tokens, shape, format);
  PROCESS(compact, scores, tuples, trailers, n_tokens, first_token, shape, format, min_score, tag);
  PROCESS(fill_slots, tuples, trailers, slot_beats, n_tokens, shape, format);
  PROCESS(write_blocks, slot_beats, blocks, n_tokens, shape, format);
}
