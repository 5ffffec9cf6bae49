"""What HeteroCache keeps of one stream on the compute device, and how it gets there when the prompt is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.attention import attend
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.row_attention import attend_rows
from hillinfer.kv.row_format import RowFormat
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import PerHead
from hillinfer.policies.drift import DriftMonitor
from hillinfer.profiling.importance import pooled, softmax_rows, top_mask, top_positions
from hillinfer.store.head_rows import HeadRows
from hillinfer.store.token_stream import TokenStream


@dataclass
class KeptHeads:
    """One stream after its prompt.

    heads      rows per KV head: the prompt's first, in order of position, then the generated ones
    positions  of the prompt's rows in each head, ascending int64
    prompt     N, tokens of the prompt; base: L_base, how many of them a pivot is watched by
    monitors   of the pivots, by KV head
    """

    heads: list[HeadRows]
    positions: list[Positions]
    prompt: int
    base: int
    monitors: dict[int, DriftMonitor]
    generated: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(head.nbytes for head in self.heads)

    @property
    def sets(self) -> list[Positions]:
        """Positions that each head can attend to, ascending."""
        generated = np.arange(self.prompt, self.prompt + self.generated)
        return [np.concatenate([positions, generated]) for positions in self.positions]

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Keep a generated token, keys and values [H, 1, d], in every head."""
        for rows, key, value in zip(self.heads, keys, values, strict=True):
            rows.append(torch.stack([key, value], 1))
        self.generated += keys.shape[1]

    def attend(self, query: torch.Tensor, scaling: float) -> tuple[torch.Tensor, PerHead]:
        """Attention [H, G, 1, d] of a query [H, G, 1, d] to the rows of its head; log-sum-exp float32 [H, G]."""
        outs, lses = zip(
            *(_attend_head(rows, query[head : head + 1], scaling) for head, rows in enumerate(self.heads)), strict=True
        )
        return torch.cat(outs), np.concatenate(lses)

    def watched(self, pivot: int, query: torch.Tensor, scaling: float, kernel: int) -> torch.Tensor:
        """How much each position of the prompt matters to a pivot, float32 [N]; query [H, G, 1, d]."""
        keys, _ = self.heads[pivot].read(stop=self.prompt)
        rows = softmax_rows(query[pivot : pivot + 1, :, 0], keys[None], scaling)
        return importance(rows, kernel)[0]

    def replace(self, head: int, positions: Positions, rows: torch.Tensor) -> None:
        """Give a head other positions of the prompt, as many as it has, ascending, and their rows [n, 2, d]."""
        self.heads[head].replace(rows)
        self.positions[head] = positions


def _attend_head(rows: HeadRows, query: torch.Tensor, scaling: float) -> tuple[torch.Tensor, PerHead]:
    """Attention [1, G, 1, d] of a query [1, G, 1, d] to one head's rows, in place where they allow it."""
    plain, geometry = rows.plain, Geometry(1, 1, query.shape[1], query.shape[3], query.dtype)
    if plain is not None and query.device.type == "cpu" and geometry.row_stride == plain.shape[1]:
        attention, every = attend_rows(geometry, query, scaling, len(rows)), np.arange(len(rows))
        attention.add(plain, every, every)
        out, lse = attention.finish()
        return out, lse.numpy()
    keys, values = rows.read()
    out, lse = attend(query, keys[None], values[None], scaling)
    return out, lse[:, :, 0].float().cpu().numpy()


def importance(rows: torch.Tensor, kernel: int) -> torch.Tensor:
    """float32 [H, N] of softmax rows [H, G, N] over the prompt: pooled, the largest of the group."""
    return pooled(rows, kernel).amax(1)


def keep_heads(
    geometry: Geometry,
    stream: TokenStream,
    last_query: torch.Tensor,
    scaling: float,
    *,
    lengths: npt.NDArray[np.int64],
    base: int,
    kernel: int,
    pivots: list[int],
    window: int,
    threshold: float,
    form: RowFormat,
    room: int,
) -> KeptHeads:
    """Bring to the device what each KV head keeps of the prompt, which lies in the tiers.

    last_query   [H, G, d] of the prompt's last token: what matters to it is kept
    lengths      rows per KV head, int64 [H]; heads with as many as the prompt has tokens keep all
    pivots       heads to watch; room: tokens that may be generated

    Two passes over the prompt, piece by piece: one for the logits, one for the rows.
    """
    device, prompt = last_query.device, stream.length
    query = last_query.float() * scaling
    logits = torch.cat(
        [torch.matmul(query, _keys(geometry, rows, device).transpose(-1, -2)) for rows in stream.pieces()], -1
    )
    scores = importance(logits.softmax(-1), kernel)
    positions = [top_positions(scores[head], int(count)) for head, count in enumerate(lengths)]
    heads = [HeadRows(form, int(count) + room, device) for count in lengths]
    first = 0
    for rows in stream.pieces():
        keys, values = geometry.unpack_rows(rows)
        for head, kept in enumerate(positions):
            part = slice(*np.searchsorted(kept, [first, first + len(rows)]))
            index = torch.from_numpy(kept[part] - first).to(rows.device)
            heads[head].append(torch.stack([keys[head][index], values[head][index]], 1))
        first += len(rows)
    monitors = {pivot: DriftMonitor(top_mask(scores[pivot], base), window, threshold) for pivot in pivots}
    return KeptHeads(heads, positions, prompt, base, monitors)


def _keys(geometry: Geometry, rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    return geometry.unpack_rows(rows.to(device))[0].float()
