// Memory → streams: the parameters and queries of the launch, one burst.
//
// Both lie in one buffer, so that the host sends one; they part here because different processes keep them.
#pragma once

#include "../plan.h"
#include "../types.h"

void read_query(const beat_t *query, hls::stream<beat_t> &parameters, hls::stream<beat_t> &queries, int n_tokens,
                int shape, int format) {
  const plan_t plan = plan_of(n_tokens, shape, format);
  const unsigned parameter_beats = plan.groups << (plan.passes - 1u);
  const unsigned query_beats = (plan.row_beats << (plan.passes - 1u)) << (plan.banks_log2 - 1u);
  const unsigned beats = plan.tokens == 0u ? 0u : parameter_beats + query_beats;
read_query:
  for (unsigned i = 0; i < beats; i++) {
#pragma HLS PIPELINE II=1
    const beat_t beat = query[i];
    if (i < parameter_beats) parameters.write(beat);
    else queries.write(beat);
  }
}
