"""The bytes that one launch of ``qk_score`` reads, and the scalars that describe them, from kernel.md alone.

Like qk_model.py this shares no code, header or constant with the C++ kernel. Axes in the shapes are those of the
model: n tokens, H KV heads, G queries per head, d elements. On top of them the kernel knows only beats: *groups* of
``hb`` beats (a head, or two that share a beat), *passes* over a beat (one, or two with dual) and ``gp`` queries each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb.qk_model import BEAT_BYTES, MAX_TOKENS, STATUS_FORMAT, STATUS_SHAPE, STATUS_TOKENS, Bools, Integers

MAX_ROW_BEATS = 256  # beats per row times passes
MAX_GROUP_BEATS = 8
EXPONENT_GROUPS = 64  # exponents of a tile are padded to whole beats

_SLOTS = 8
_SLOT = np.dtype([("m", "<u2"), ("r", "u1"), ("flags", "u1"), ("o", "<i4")])


class Format(IntEnum):
    """What keys are stored as, and what they are cast to before they are multiplied."""

    FP16_INT8 = 0
    FP16_INT4 = 1
    INT8 = 2
    INT4 = 3

    @property
    def stored(self) -> bool:
        """Keys are integers already: a scoring copy."""
        return self >= Format.INT8

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return {Format.INT8: 8, Format.INT4: 4}.get(self, 16)

    @property
    def lanes(self) -> int:
        """Elements in a beat."""
        return 8 * BEAT_BYTES // self.bits

    @property
    def limit(self) -> int:
        """The largest magnitude that a cast gives."""
        return 7 if self in (Format.FP16_INT4, Format.INT4) else 127


@dataclass(frozen=True)
class Geometry:
    """How ``heads`` heads of ``group`` queries and ``d`` elements lie in beats.

    pair   two heads share a beat    dual   each beat is used for two passes    gp   queries per pass and head
    """

    format: Format
    heads: int
    group: int
    d: int
    pair: bool
    dual: bool
    gp: int

    @classmethod
    def fit(cls, fmt: Format, heads: int, group: int, d: int, *, pair: bool = False, loose: bool = False) -> Geometry:
        """The densest geometry that holds so many heads and queries; ValueError when none does.

        loose: one with more passes and banks than the queries need, where the format allows them.
        """
        most = 4 if fmt.stored else 8  # queries per pass
        dual = fmt.stored and (loose or group > most)
        if group > most * (1 + dual):
            raise ValueError(f"{group} queries per head need {-(-group // 8)} launches")
        per_pass = most if loose else -(-group // (1 + dual))
        gp = max(1 << (per_pass - 1).bit_length(), 64 // fmt.lanes)
        if pair and d > fmt.lanes // 2:
            raise ValueError(f"two heads of {d} elements do not share a beat of {fmt.lanes}")
        geometry = cls(fmt, heads, group, d, pair, dual, gp)
        if argument_status(0, geometry.shape, fmt):
            raise ValueError(f"{geometry} is not within the kernel's limits: shape {geometry.shape:#x}")
        return geometry

    @property
    def heads_per_group(self) -> int:
        return 2 if self.pair else 1

    @property
    def passes(self) -> int:
        return 2 if self.dual else 1

    @property
    def groups(self) -> int:
        """Groups per row, ng."""
        return -(-self.heads // self.heads_per_group)

    @property
    def beats(self) -> int:
        """Beats per group, hb."""
        return 1 if self.pair else -(-self.d // self.format.lanes)

    @property
    def row_beats(self) -> int:
        """Key beats of one token."""
        return self.groups * self.beats

    @property
    def banks(self) -> int:
        """P: query banks of 32 lanes that one pass reads at once."""
        return self.gp * self.format.lanes // 32

    @property
    def shape(self) -> int:
        """The scalar ``shape``."""
        banks_log2 = self.banks.bit_length() - 1
        return self.beats | self.pair << 4 | self.dual << 5 | banks_log2 << 8 | self.groups << 16

    def query(
        self, q8: Integers, m: Integers, r: Integers, o: Integers, enabled: Bools, filler: np.random.Generator
    ) -> bytes:
        """The query buffer: parameters [group][pass], a beat each, then queries as banks.

        q8: int [H, G, d] in INT8; m, r, o, enabled: [H, G]. What belongs to no enabled query (its parameters, and
        the elements of slots without one) is noise from ``filler``: the kernel must not look at it.
        """
        heads, queries = self.groups * self.heads_per_group, self.passes * self.gp
        lanes = self.beats * self.format.lanes // self.heads_per_group

        slots = _disabled_slots((heads, queries), filler)
        elements = filler.integers(-128, 128, (heads, queries, lanes)).astype(np.int8)
        of_real = slots[: self.heads, : self.group]
        elements[: self.heads, : self.group] = 0
        elements[: self.heads, : self.group, : self.d] = q8
        for field, values in (("m", m), ("r", r), ("flags", enabled), ("o", o)):
            of_real[field][enabled] = values[enabled]

        # Open: a pass has its slots in the order of its queries; a pair's are [query][head], as its queries are.
        by_pass = slots.reshape(self.groups, self.heads_per_group, self.passes, self.gp).transpose(0, 2, 3, 1)
        parameters = _disabled_slots((self.groups, self.passes, _SLOTS), filler)
        parameters[:, :, : self.gp * self.heads_per_group] = by_pass.reshape(self.groups, self.passes, -1)

        if self.pair:
            split = elements.reshape(self.groups, 2, self.passes, self.gp, lanes)
            banks = split.transpose(0, 2, 3, 1, 4)  # [group][pass][query][head][lane]
        else:
            split = elements.reshape(self.groups, self.passes, self.gp, self.beats, self.format.lanes)
            banks = split.transpose(0, 3, 1, 2, 4)  # [group][beat][pass][query][lane]
        return parameters.tobytes() + np.ascontiguousarray(banks).tobytes()

    def keys(self, keys: Integers) -> bytes:
        """The key buffer, [token][group][beat]: keys uint16 FP16 patterns or stored integers [n, H, d]."""
        lanes = self.beats * self.format.lanes // self.heads_per_group
        padded = np.zeros((len(keys), self.groups * self.heads_per_group, lanes), keys.dtype)
        padded[:, : self.heads, : self.d] = keys
        if not self.format.stored:
            return padded.astype("<u2").tobytes()
        if self.format is Format.INT8:
            return padded.astype(np.int8).tobytes()
        nibbles = (padded.reshape(-1, 2) & 15).astype(np.uint8)
        return (nibbles[:, 0] | nibbles[:, 1] << 4).astype(np.uint8).tobytes()

    def exponents(self, exponents: Integers) -> bytes:
        """The exponent buffer of exponents int8 [tiles, groups]: a tile's are padded to whole beats."""
        width = -(-self.groups // EXPONENT_GROUPS) * EXPONENT_GROUPS
        padded = np.zeros((len(exponents), width), np.int8)
        padded[:, : self.groups] = exponents
        return padded.tobytes()

    def of_heads(self, exponents: Integers) -> Integers:
        """Exponents [tiles, groups] as those of the heads [tiles, H]: a pair shares one."""
        return np.repeat(exponents, self.heads_per_group, axis=1)[:, : self.heads]


def _disabled_slots(shape: tuple[int, ...], filler: np.random.Generator) -> npt.NDArray[np.void]:
    slots = np.zeros(shape, _SLOT)
    slots["m"] = filler.integers(0, 1 << 16, shape)
    slots["r"] = filler.integers(0, 64, shape)
    slots["o"] = filler.integers(-(1 << 31), 1 << 31, shape)
    return slots


def argument_status(n_tokens: int, shape: int, fmt: int) -> int:
    """The status of a launch with these 32-bit scalars: 1 n, 2 shape, 4 format, ORed; 0 when all are legal."""
    shape, fmt = shape & 0xFFFFFFFF, fmt & 0xFFFFFFFF
    hb, pair, dual, lp, ng = shape & 15, shape >> 4 & 1, shape >> 5 & 1, shape >> 8 & 7, shape >> 16 & 511
    # Open: where other format bits are illegal, shape is judged by the low two as if they were not.
    keys = Format(fmt & 3)
    legal_shape = (
        not shape & ~0x01FF073F
        and 1 <= hb <= MAX_GROUP_BEATS
        and ng >= 1
        and hb * ng * (1 + dual) <= MAX_ROW_BEATS
        and max(64, keys.lanes) <= 32 << lp <= (512 if keys is Format.INT4 else 256)
        and (keys.stored or not (pair or dual))
        and (hb == 1 or not pair)
    )
    return (
        (0 if 0 <= n_tokens <= MAX_TOKENS else STATUS_TOKENS)
        | (0 if legal_shape else STATUS_SHAPE)
        | (0 if not fmt & ~0x13 else STATUS_FORMAT)
    )
