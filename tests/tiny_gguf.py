"""A tiny GGUF file, written as llama.cpp writes one: what conversion is tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from transformers import PreTrainedModel

from tests.tiny import BOS, EOS, PAD, SPECIALS, tiny, tiny_tokenizer

_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "model.layers": "blk",
}


def write_tiny_gguf(path: Path, *, seed: int = 0, leave_out: str = "") -> PreTrainedModel:
    """Write a tiny random Llama with its tokenizer and return it; the tensor called ``leave_out`` is left out."""
    alphabet = sorted(set(tiny_tokenizer().get_vocab()) - set(SPECIALS))
    tokens = [*SPECIALS, *alphabet, "th"]
    model = tiny(vocab_size=len(tokens), seed=seed, eos_token_id=EOS)
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * len(SPECIALS) + [gguf.TokenType.NORMAL] * (len(alphabet) + 1))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(PAD)
    writer.add_chat_template(str(tiny_tokenizer().chat_template))
    for name, weight in model.state_dict().items():
        short = _rename(name)
        if short != leave_out:
            writer.add_tensor(short, _rotary_order(short, weight.numpy(), config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _rename(name: str) -> str:
    for long, short in _NAMES.items():
        name = name.replace(long, short)
    return name


def _rotary_order(name: str, weight: np.ndarray[Any, Any], config: Any) -> np.ndarray[Any, Any]:
    """llama.cpp pairs neighbouring rows of a head for the rotation, transformers the two halves of a head."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(name.split(".")[-2], 0)
    if not heads:
        return weight
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns).copy()
