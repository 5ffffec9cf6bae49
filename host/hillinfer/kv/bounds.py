"""Bounds on q·k for a chunk of keys, from each channel's extremes over the chunk.

For any key k of a chunk, Σ_d min(q·min, q·max) ≤ q·k ≤ Σ_d max(q·min, q·max). Split by the sign of q, either bound is
one product of 2·d terms: the upper one is [q⁺ | q⁻]·[max | min], the lower one [q⁻ | q⁺]·[max | min].
"""

from __future__ import annotations

import torch

from hillinfer.kv.growing import GrowingTensor


def signed(query: torch.Tensor) -> torch.Tensor:
    """[q⁺ | q⁻] of a query [..., d]: what ``ChunkBounds.extremes`` is multiplied with for the upper bound."""
    return torch.cat([query.clamp(min=0), query.clamp(max=0)], -1)


def swapped(query: torch.Tensor) -> torch.Tensor:
    """[q⁻ | q⁺] of a query [..., d]: for the lower bound."""
    return torch.cat([query.clamp(max=0), query.clamp(min=0)], -1)


class ChunkBounds:
    """Each channel's largest and smallest value in every chunk of ``chunk`` tokens, the last one begun or not.

    Kept in the keys' own dtype, which holds them exactly.
    """

    def __init__(self, heads: int, dim: int, chunk: int, dtype: torch.dtype, device: torch.device) -> None:
        self._chunk, self._dim = chunk, dim
        self.tokens = 0
        self._extremes = GrowingTensor(heads, 2 * dim, dtype, device)

    def __len__(self) -> int:
        return len(self._extremes)

    @property
    def extremes(self) -> torch.Tensor:
        """[H, chunks, 2·d], [max | min] of every chunk; a view."""
        return self._extremes.values

    @property
    def nbytes(self) -> int:
        return self._extremes.nbytes

    def extend(self, keys: torch.Tensor) -> None:
        """Keys [H, n, d] of the next tokens, n of any size."""
        missing = min(-self.tokens % self._chunk, keys.shape[1])
        if missing:
            last = self.extremes[:, -1]
            torch.maximum(last[:, : self._dim], keys[:, :missing].amax(1), out=last[:, : self._dim])
            torch.minimum(last[:, self._dim :], keys[:, :missing].amin(1), out=last[:, self._dim :])
        whole = (keys.shape[1] - missing) // self._chunk * self._chunk
        if whole:
            chunks = keys[:, missing : missing + whole]
            chunks = chunks.reshape(len(chunks), -1, self._chunk, self._dim)
            self._extremes.append(torch.cat([chunks.amax(2), chunks.amin(2)], -1))
        begun = keys[:, missing + whole :]
        if begun.shape[1]:
            self._extremes.append(torch.cat([begun.amax(1), begun.amin(1)], -1)[:, None])
        self.tokens += keys.shape[1]
