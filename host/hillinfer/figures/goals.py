"""The figures that the project holds itself to: what each is, its goal, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """at_least: the goal is a floor; else a ceiling."""

    means: str
    value: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether the figure is as good as its goal."""
        return value >= self.value if self.at_least else value <= self.value

    def reached(self, value: float) -> float:
        """How far it goes: 1 at the goal, 2 where it is twice as good."""
        return value / self.value if self.at_least else self.value / value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g}"


GOALS = {
    "decode_8k_added_ratio": Goal("what 8k tokens add to a step, of the stock cache's", 0.12),
    "decode_8k_ratio": Goal("a whole step at 8k, of the stock cache's", 0.55),
    "decode_32k_ratio": Goal("a whole step at 32k, of the stock cache's", 0.30),
    "decode_8k_kl_over_raw_sum": Goal("KL at 8k, of the paper's ranking", 0.65),
    "prefill_8k_ratio": Goal("reading 8k tokens, of the stock cache's time", 1.1),
    "scorer_int8_share_of_bound": Goal("INT8 scorer's speed, of reading memory", 0.8, at_least=True),
    "scorer_int8_over_torch": Goal("INT8 scorer over torch's best", 5, at_least=True),
    "scorer_int8_over_torch_held": Goal("the same, of the formats that keys are held in", 5, at_least=True),
    "big_32k_over_full_offload": Goal("32k, 32 heads: over full offload", 8.6, at_least=True),
    "big_32k_gqa_over_full_offload": Goal("32k, 8 KV heads: over full offload", 6, at_least=True),
    "big_32k_over_best_baseline": Goal("32k, 32 heads: over the best at equal mass", 2, at_least=True),
    "big_32k_margin_over_best_baseline": Goal("the same, with a margin of 3 nats", 2, at_least=True),
    "big_32k_device_copy_over_best_baseline": Goal("32k, copy on the device: over that best", 4.2, at_least=True),
    "big_32k_device_copy_margin_over_best_baseline": Goal("the same, with a margin of 3 nats", 4.2, at_least=True),
    "big_32k_over_reads_bound": Goal("32k: a step over its reads alone", 1.3),
    "big_32k_gqa_over_reads_bound": Goal("the same, 8 KV heads", 1.3),
    "big_32k_gqa_batch_over_reads_bound": Goal("the same, 8 KV heads, batch 4", 1.3),
    "moved_fraction": Goal("rows moved per step, of the hot pool", 0.02),
    "balance_error": Goal("host's and device's paths apart", 0.15),
}
"""By the names in the summary of bench.json."""

SHOWN = {
    "decode_8k_over_floor": "a whole step at 8k, of the model's without attention",
    "hot_hit_rate": "32k: selected rows found in the hot pool",
}
"""What other figures there are: without a goal."""
