"""Resident memory, measured: a KV cache of 1 GiB grows the process by its budgets and little more."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]

_RUN = """
    import sys
    import torch
    sys.path[:0] = [sys.argv[2], sys.argv[2] + "/host"]
    from transformers import LlamaConfig, LlamaForCausalLM
    from hillinfer import HillInferCache
    from hillinfer.generation import cache_keyword
    from hillinfer.memory import PeakMemory

    config = LlamaConfig(
        vocab_size=300, hidden_size=64, intermediate_size=64, num_hidden_layers=16, num_attention_heads=8,
        num_key_value_heads=8, head_dim=256, max_position_embeddings=8192, eos_token_id=None,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(5, 300, (1, 4096))
    keyword = cache_keyword(model)

    def run(cache, tokens, new):
        cache.prompt_length = tokens
        with torch.inference_mode():
            for start in range(0, tokens, 256):
                model(ids[:, start : start + 256], logits_to_keep=1, **{keyword: cache})
            for step in range(new):
                model(ids[:, step : step + 1], **{keyword: cache})

    with HillInferCache(model, alpha=0.1, hot_bytes="20%", cold_dir=sys.argv[1]) as cache:
        run(cache, 512, 3)  # what a first run loads and keeps is not the cache's
    memory = PeakMemory()
    before = memory.peak_bytes()  # a window that has just begun: what is resident now
    with HillInferCache(model, alpha=0.1, hot_bytes="20%", cold_dir=sys.argv[1]) as cache:
        run(cache, 4096, 40)
        tiers = cache.stats().tiers
    assert memory.windowed
    whole = tiers.cold.bytes + tiers.device.bytes
    copy = tiers.scoring.peak_bytes
    print(memory.peak_bytes() - before, tiers.hot.peak_bytes, tiers.device.peak_bytes, copy, whole)
"""


def test_memory_stays_within_the_budgets(tmp_path):
    code = textwrap.dedent(_RUN)
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    grown, hot, device, copy, whole = map(int, done.stdout.split())
    assert whole >= 1 << 30
    assert hot <= 0.2 * whole
    parts = f"hot pool {hot >> 20}, device {device >> 20}, scoring copy {copy >> 20}"
    print(f"KV {whole >> 20} MiB, {parts}, RSS grew by {grown >> 20} MiB")
    assert grown <= hot + device + copy + (150 << 20)
