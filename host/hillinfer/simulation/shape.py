"""What the timing model knows of a language model: how many bytes a layer has to go through."""

from __future__ import annotations

from dataclasses import dataclass

from hillinfer.errors import SettingError, nearest


@dataclass(frozen=True)
class Shape:
    """A decoder of one kind of layer.

    layers, hidden, intermediate, vocabulary   as in the model's configuration
    query_heads, kv_heads, head_dim            of its attention
    mlp_matrices   hidden × intermediate matrices per layer: 3 with a gate, 2 without
    context        tokens the model was made for
    weight_bytes   per weight; kv_bytes: per element of a key or value
    """

    name: str
    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    intermediate: int
    vocabulary: int
    mlp_matrices: int
    context: int
    weight_bytes: float = 2
    kv_bytes: float = 2

    @property
    def key_elements(self) -> int:
        """Elements of a token's key, all KV heads."""
        return self.kv_heads * self.head_dim

    @property
    def row_bytes(self) -> float:
        """Bytes of a token's KV in one layer."""
        return 2 * self.key_elements * self.kv_bytes

    @property
    def token_bytes(self) -> float:
        """Bytes of a token's KV in all layers."""
        return self.layers * self.row_bytes

    @property
    def attention_weights(self) -> float:
        """Bytes of a layer's four projections."""
        queries = self.query_heads * self.head_dim
        return self.hidden * (2 * queries + 2 * self.key_elements) * self.weight_bytes

    @property
    def mlp_weights(self) -> float:
        """Bytes of a layer's feed-forward part."""
        return self.mlp_matrices * self.hidden * self.intermediate * self.weight_bytes

    @property
    def layer_weights(self) -> float:
        """Bytes of weights that a layer of a step reads."""
        return self.attention_weights + self.mlp_weights

    @property
    def head_weights(self) -> float:
        """Bytes of the output projection."""
        return self.vocabulary * self.hidden * self.weight_bytes

    def activations(self, tokens: int) -> float:
        """Bytes that so many tokens take in a layer, beside weights and KV: elements as wide as the KV's.

        The hidden states and their norm; queries and what attention gives; keys and values; of the MLP its inner
        matrices' products and what becomes of them. And float32 logits of one token.
        """
        elements = 2 * self.hidden + 2 * self.query_heads * self.head_dim + 2 * self.key_elements
        return tokens * (elements + self.mlp_matrices * self.intermediate) * self.kv_bytes + 4 * self.vocabulary

    @property
    def weights(self) -> float:
        """Bytes that a step reads of the model; those of the input embedding are not read but for a row."""
        return self.layers * self.layer_weights + self.head_weights


# Every number from the config.json of the model named in the comment.
_SHAPES = {
    shape.name: shape
    for shape in (
        Shape("opt-6.7b", 32, 32, 32, 128, 4096, 16384, 50272, 2, 2048),  # facebook/opt-6.7b
        Shape("llama-7b", 32, 32, 32, 128, 4096, 11008, 32000, 3, 2048),  # huggyllama/llama-7b
        Shape("llama-13b", 40, 40, 40, 128, 5120, 13824, 32000, 3, 2048),  # huggyllama/llama-13b
        Shape("longchat-7b", 32, 32, 32, 128, 4096, 11008, 32000, 3, 32768),  # lmsys/longchat-7b-v1.5-32k
        # its intermediate_size of 22016 counts both of two halves
        Shape("qwen-7b", 32, 32, 32, 128, 4096, 11008, 151936, 3, 8192),  # Qwen/Qwen-7B
        Shape("llama-3.1-8b", 32, 32, 8, 128, 4096, 14336, 128256, 3, 131072),  # meta-llama/Llama-3.1-8B
        Shape("qwen2.5-7b", 28, 28, 4, 128, 3584, 18944, 152064, 3, 131072),  # Qwen/Qwen2.5-7B-Instruct, with YaRN
        # HuggingFaceTB/SmolLM2-135M-Instruct, in float32 as it runs here
        Shape("smollm2-135m", 30, 9, 3, 64, 576, 1536, 49152, 3, 8192, 4, 4),
    )
}


def names() -> list[str]:
    """Models whose shape is known by name."""
    return list(_SHAPES)


def named(name: str) -> Shape:
    """The shape of a model; SettingError for a name that is not known, with the nearest."""
    found = _SHAPES.get(name.lower())
    if found is None:
        raise SettingError(f"there is no shape {name!r}{nearest(name.lower(), names())}")
    return found
