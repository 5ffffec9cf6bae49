"""Tiny random models of every family the engine serves, and a model folder on disk: made in milliseconds.

The weights are larger than a trained model's initial ones (``initializer_range`` 0.2): attention is then
peaked, so that a wrong token, position or mask shows in the output instead of drowning in a uniform softmax.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

FAMILIES = ("llama", "qwen2", "qwen3", "mistral", "gemma3", "opt")
CASES = [(family, kv_heads) for family in FAMILIES for kv_heads in (4, 2, 1) if family != "opt" or kv_heads == 4]
"""(family, kv_heads) for ``tiny``: every family with every kind of grouping it knows."""
HEAD_DIM = 16
VOCAB = 300
PAD, BOS, EOS, TURN, END = range(5)
SPECIALS = ["<pad>", "<s>", "</s>", "<|turn|>", "<|end|>"]
SLIDING_WINDOW = 32
"""Window of Gemma 3's sliding layers: shorter than most test prompts, so that those layers really forget."""

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)

_MODEL_TYPE = {"gemma3": "gemma3_text"}
_OWN_SETTINGS: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {"use_sliding_window": False},
    "qwen3": {"use_sliding_window": False},
    "mistral": {"sliding_window": None},
    "gemma3": {
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "sliding_window": SLIDING_WINDOW,
        "query_pre_attn_scalar": HEAD_DIM,
    },
    "opt": {"ffn_dim": 128, "word_embed_proj_dim": 64},
}


def tiny(
    family: str = "llama", kv_heads: int = 2, heads: int = 4, *, seed: int = 0, **overrides: Any
) -> PreTrainedModel:
    """A random causal language model of ``family``, float32, in eval mode; same arguments, same weights.

    ``kv_heads`` = ``heads``: MHA, 1: MQA, between: GQA (OPT knows MHA only and takes no other). Gemma 3 has
    layers sliding, full, sliding; the others two full-attention ones. Without an end-of-text token a run has
    the length it was asked for; ``overrides`` are fields of the family's config, such as ``eos_token_id``.
    """
    settings: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": heads * HEAD_DIM,
        "num_hidden_layers": 3 if family == "gemma3" else 2,
        "num_attention_heads": heads,
        "max_position_embeddings": 4096,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": None,
        "tie_word_embeddings": False,  # tied random embeddings repeat the last token for ever
    }
    if family == "opt":
        if kv_heads != heads:
            raise ValueError(f"OPT has no grouped heads: ask for kv_heads={heads}")
        settings |= {"init_std": 0.2, "dropout": 0.0}
    else:
        settings |= {
            "initializer_range": 0.2,
            "num_key_value_heads": kv_heads,
            "head_dim": HEAD_DIM,
            "intermediate_size": 128,
        }
    settings |= _OWN_SETTINGS[family]
    settings |= overrides
    if family == "opt":
        settings["word_embed_proj_dim"] = settings["hidden_size"]
    config = AutoConfig.for_model(_MODEL_TYPE.get(family, family), **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.eval()


def tiny_llama(kv_heads: int = 2, heads: int = 4, **overrides: Any) -> PreTrainedModel:
    """``tiny("llama", ...)``: the family most tests use."""
    return tiny("llama", kv_heads, heads, **overrides)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer (one token per byte of UTF-8, so 261 tokens in all) with a chat template."""
    words = SPECIALS + sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE(vocab={word: number for number, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIALS)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIALS[PAD],
        bos_token=SPECIALS[BOS],
        eos_token=SPECIALS[EOS],
        additional_special_tokens=SPECIALS[TURN:],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def tiny_model_dir(path: Path, family: str = "llama", **settings: Any) -> Path:
    """Save a tiny model and its tokenizer under ``path``, laid out as Hugging Face does; returns ``path``.

    The model's vocabulary is exactly the tokenizer's, so every token it emits decodes to one byte.
    """
    tokenizer = tiny_tokenizer()
    model = tiny(family, **({"vocab_size": len(tokenizer)} | settings))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def random_ids(length: int, *, batch: int = 1, seed: int = 0, vocab: int = VOCAB) -> torch.Tensor:
    """Token ids [batch, length] without the special tokens, the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(len(SPECIALS), vocab, (batch, length), generator=generator)
