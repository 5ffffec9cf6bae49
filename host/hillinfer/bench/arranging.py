"""The rule by which captured heads become the heads of a larger shape (docs/decisions/0042-captured-heads-arranged.md).

1. A captured KV head of d channels is cut into *pieces* of at most the wanted size. A cut keeps rotary pairs whole, and
   deals them out in turn: every piece has slow and fast ones. Pieces are in order of layer, head, and place in it.
2. A wanted head takes the next pieces, as many as fill its channels, side by side: its logit is the sum of theirs.
   Streams (layer by layer, sequence by sequence) go on where the last one ended, round and round.
3. Query i of a wanted head's group is query (r + i) mod G of the first piece's head, and so on with the others, each
   turned by one more whenever the first has gone round; r is how often all pieces have been used before.

Logits are scaled by 1/√d of the wanted shape. Nothing else is done to them: what is selected, hit and captured follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.bench.captures import Capture, Captured
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry


@dataclass(frozen=True)
class Shape:
    """The cache of a model that is not here. layers: how many it has."""

    name: str
    kv_heads: int
    group: int
    head_dim: int
    layers: int

    def geometry(self, layers: int) -> Geometry:
        """The cache of ``layers`` of them, in FP16."""
        return Geometry(layers, self.kv_heads, self.group, self.head_dim, torch.float16)


MHA = Shape("LongChat-7B, 32 × 128", 32, 1, 128, 32)
GQA = Shape("GQA, 8 × 128, G = 4", 8, 4, 128, 32)


@dataclass(frozen=True)
class Arranged:
    """One stream: query [H, G, n, d], keys and values [H, n, d], float16."""

    query: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True)
class _Piece:
    layer: Captured
    head: int
    channels: npt.NDArray[np.int64]


class Arrangement:
    """A capture in a wanted shape, stream by stream."""

    def __init__(self, capture: Capture, shape: Shape) -> None:
        self._shape = shape
        self._pieces = [
            _Piece(layer, head, channels)
            for layer in capture.layers
            for head in range(layer.keys.shape[0])
            for channels in _cuts(layer.keys.shape[2], shape.head_dim)
        ]
        size = len(self._pieces[0].channels)
        if shape.head_dim % size:
            raise SettingError(f"heads of {shape.head_dim} channels cannot be made of pieces of {size}")
        self._per_head = shape.head_dim // size

    @property
    def distinct(self) -> int:
        """Different heads, with their queries, before they repeat; a group's heads differ in their keys."""
        group = self._pieces[0].layer.query.shape[1]
        turns = group if self._shape.group < group else 1
        return len(self._pieces) * turns // self._per_head

    def stream(self, number: int) -> Arranged:
        """The stream of this number, of all layers and sequences counted together."""
        shape = self._shape
        tokens = self._pieces[0].layer.keys.shape[1]
        query = torch.empty(shape.kv_heads, shape.group, tokens, shape.head_dim, dtype=torch.float16)
        keys = torch.empty(shape.kv_heads, tokens, shape.head_dim, dtype=torch.float16)
        values = torch.empty_like(keys)
        for head in range(shape.kv_heads):
            first = (number * shape.kv_heads + head) * self._per_head
            for place in range(self._per_head):
                round_, index = divmod(first + place, len(self._pieces))
                piece = self._pieces[index]
                width = len(piece.channels)
                into = slice(place * width, (place + 1) * width)
                keys[head, :, into] = _take(piece.layer.keys[piece.head], piece.channels)
                values[head, :, into] = _take(piece.layer.values[piece.head], piece.channels)
                group = piece.layer.query.shape[1]
                for i in range(shape.group):
                    turned = (round_ + i + place * (i // group)) % group
                    query[head, i, :, into] = _take(piece.layer.query[piece.head, turned], piece.channels)
        return Arranged(query, keys, values)


def _cuts(captured: int, wanted: int) -> list[npt.NDArray[np.int64]]:
    """Channels of each piece of a head: all of them, or parts with whole rotary pairs (i, i + captured / 2)."""
    if captured <= wanted:
        return [np.arange(captured)]
    if captured % wanted or wanted % 2:
        raise SettingError(f"heads of {captured} channels cannot be cut into heads of {wanted}")
    parts, half = captured // wanted, captured // 2
    return [
        np.concatenate([np.arange(part, half, parts), half + np.arange(part, half, parts)]) for part in range(parts)
    ]


def _take(rows: npt.NDArray[np.float16], channels: npt.NDArray[np.int64]) -> torch.Tensor:
    """Channels of rows [n, d]."""
    return torch.from_numpy(np.ascontiguousarray(rows[:, channels]))
