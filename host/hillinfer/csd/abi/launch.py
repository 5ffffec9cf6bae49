"""The scalars of one launch: what they say about sizes, and whether the kernel would accept them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import numbers
from hillinfer.errors import DeviceError

_INT32 = range(-(1 << 31), 1 << 31)


@dataclass(frozen=True)
class Launch:
    """One launch of ``qk_score``; making one that the kernel would refuse is a DeviceError that says why.

    tokens       scored, 0 ... 2^20, from the first token that ``keys`` holds
    first        position of that token, which starts a tile and a block; int32
    shape        how keys and queries stand in beats (Layout makes it)
    format       key format and reduction (Layout makes it)
    min_score    tuples below it are left out; int32
    tag          of the trailers, to tell this launch's blocks from others'; int32
    """

    tokens: int
    first: int
    shape: int
    format: int
    min_score: int
    tag: int

    def __post_init__(self) -> None:
        for name in ("tokens", "first", "shape", "format", "min_score", "tag"):
            if getattr(self, name) not in _INT32:
                raise DeviceError(f"{name} is {getattr(self, name)}, which is no 32-bit signed number")
        if not 0 <= self.tokens <= numbers.MAX_TOKENS:
            raise DeviceError(
                f"a launch scores 0 to {numbers.MAX_TOKENS} tokens, not {self.tokens}: split it into several"
            )
        wrong = _wrong(self.shape, self.format)
        if wrong:
            raise DeviceError(f"impossible launch (shape {self.shape:#x}, format {self.format:#x}): {wrong}")

    @property
    def scalars(self) -> tuple[int, int, int, int, int, int]:
        """In the order of the kernel's arguments."""
        return self.tokens, self.first, self.shape, self.format, self.min_score, self.tag

    @property
    def query_beats(self) -> int:
        """Beats of ``query`` that the kernel reads: parameters, then queries."""
        if not self.tokens:
            return 0
        queries = self._group_beats * self._groups * self._passes << (self._banks_log2 - 1)
        return self._groups * self._passes + queries

    @property
    def key_beats(self) -> int:
        """Beats of ``keys`` that the kernel reads."""
        return self.tokens * self._group_beats * self._groups

    @property
    def exponent_beats(self) -> int:
        """Beats of ``exps`` that the kernel reads."""
        tiles = -(-self.tokens // numbers.TILE_TOKENS)
        return tiles * -(-self._groups // numbers.EXPONENTS_PER_BEAT)

    @property
    def block_beats(self) -> int:
        """Beats of ``blocks`` that the kernel writes: one slot at least."""
        return self.slots * numbers.SLOT_BEATS

    @property
    def slots(self) -> int:
        return max(1, -(-self.tokens // numbers.BLOCK_TOKENS))

    @property
    def _group_beats(self) -> int:
        return _field(self.shape, numbers.SHAPE_BEATS_BIT, numbers.SHAPE_BEATS_BITS)

    @property
    def _groups(self) -> int:
        return _field(self.shape, numbers.SHAPE_GROUPS_BIT, numbers.SHAPE_GROUPS_BITS)

    @property
    def _banks_log2(self) -> int:
        return _field(self.shape, numbers.SHAPE_BANKS_BIT, numbers.SHAPE_BANKS_BITS)

    @property
    def _passes(self) -> int:
        return 1 + _field(self.shape, numbers.SHAPE_DUAL_BIT)


def _field(shape: int, first_bit: int, bits: int = 1) -> int:
    return shape >> first_bit & ((1 << bits) - 1)


@functools.lru_cache(maxsize=256)  # a driver makes thousands of launches of one shape
def _wrong(shape: int, format: int) -> str | None:
    """The first rule of the contract that shape and format break."""
    beats = _field(shape, numbers.SHAPE_BEATS_BIT, numbers.SHAPE_BEATS_BITS)
    pair = _field(shape, numbers.SHAPE_PAIR_BIT)
    passes = 1 + _field(shape, numbers.SHAPE_DUAL_BIT)
    banks_log2 = _field(shape, numbers.SHAPE_BANKS_BIT, numbers.SHAPE_BANKS_BITS)
    groups = _field(shape, numbers.SHAPE_GROUPS_BIT, numbers.SHAPE_GROUPS_BITS)
    keys = format & 3
    known = shape_word(15, bool(pair), passes == 2, 7, 511)
    least, most = (2, 4) if keys == numbers.INT4 else (1, 3)
    rules = (
        (format & ~0b10011 == 0, "format has bits that mean nothing"),
        (shape & ~known == 0, "shape has bits that mean nothing"),
        (1 <= beats <= 8, f"{beats} beats per group, not 1 to 8"),
        (1 <= groups <= 256, f"{groups} groups per row, not 1 to 256"),
        (
            beats * groups * passes <= numbers.MAX_ROW_PASSES,
            "beats per row times passes exceed 256: launch fewer heads at a time",
        ),
        (least <= banks_log2 <= most, f"2^{banks_log2} banks, not 2^{least} to 2^{most}"),
        (keys >= numbers.INT8 or not (pair or passes == 2), "pair and dual are for stored formats"),
        (not pair or beats == 1, "two heads share one beat, not several"),
    )
    return next((message for holds, message in rules if not holds), None)


def shape_word(group_beats: int, pair: bool, dual: bool, banks_log2: int, groups: int) -> int:
    """The scalar ``shape``."""
    return (
        group_beats << numbers.SHAPE_BEATS_BIT
        | pair << numbers.SHAPE_PAIR_BIT
        | dual << numbers.SHAPE_DUAL_BIT
        | banks_log2 << numbers.SHAPE_BANKS_BIT
        | groups << numbers.SHAPE_GROUPS_BIT
    )


def aligned(beats: int) -> npt.NDArray[np.uint8]:
    """Zeros, uint8 [beats, 64], at an address that is a multiple of 64."""
    memory = np.zeros((beats + 1) * numbers.BEAT_BYTES, np.uint8)
    start = -memory.ctypes.data % numbers.BEAT_BYTES
    return memory[start : start + beats * numbers.BEAT_BYTES].reshape(beats, numbers.BEAT_BYTES)
