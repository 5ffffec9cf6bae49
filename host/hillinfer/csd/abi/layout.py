"""Keys, exponents and queries as the kernel reads them (docs/kernel.md, "ABI").

The kernel knows groups, a run of beats with one exponent, not models. A group is one KV head, or with ``pair`` two of
them that share a beat. Names of axes:

    n  tokens    H  KV heads    G  query heads per KV head    d  elements per head    tiles  ⌈n / 64⌉
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import numbers
from hillinfer.csd.abi.launch import Launch, aligned, shape_word
from hillinfer.errors import DeviceError
from hillinfer.kv.query import QuantisedQuery

Beats = npt.NDArray[np.uint8]

_PARAMETER = np.dtype(
    {
        "names": ["m", "r", "flags", "o"],
        "formats": ["<u2", "u1", "u1", "<i4"],
        "offsets": [numbers.PARAM_M, numbers.PARAM_R, numbers.PARAM_FLAGS, numbers.PARAM_O],
        "itemsize": numbers.PARAM_BYTES,
    }
)
_KEYS = {
    "fp16_int8": numbers.FP16_INT8,
    "fp16_int4": numbers.FP16_INT4,
    "int8": numbers.INT8,
    "int4": numbers.INT4,
}
LANES = {"fp16_int8": 32, "fp16_int4": 32, "int8": 64, "int4": 128}
"""Elements of a beat."""
_QUERIES_PER_LAUNCH = 8


@dataclass(frozen=True)
class Layout:
    """Where the heads of one layer stand in the kernel's beats.

    keys       "fp16_int8", "fp16_int4" (FP16 keys, cast by the kernel), "int8" or "int4" (stored)
    kv_heads   H
    group      G; more than 8 take several launches, whose scores the caller merges
    head_dim   d
    pair       two heads in each beat, half the bytes: stored formats with d of at most half a beat. The two heads
               share their exponents; an odd H gets a head of zeros.
    """

    keys: str
    kv_heads: int
    group: int
    head_dim: int
    pair: bool = False

    def __post_init__(self) -> None:
        if self.keys not in _KEYS:
            raise DeviceError(f"unknown key format {self.keys!r}: choose one of {', '.join(_KEYS)}")
        if min(self.kv_heads, self.group, self.head_dim) < 1:
            raise DeviceError(f"heads, group and head_dim must be at least 1: {self}")
        if self.head_dim > 8 * self.lanes:
            raise DeviceError(f"head_dim {self.head_dim} exceeds the {8 * self.lanes} that {self.keys} keys can have")
        if self.pair and (self._stored is False or 2 * self.head_dim > self.lanes):
            raise DeviceError(f"two heads of {self.head_dim} {self.keys} keys do not share a beat: leave pair out")
        Launch(0, 0, self.shape, self.format("max"), 0, 0)  # the rest of the kernel's limits

    @property
    def lanes(self) -> int:
        """Elements of a beat."""
        return LANES[self.keys]

    @property
    def groups(self) -> int:
        """Groups per row."""
        return -(-self.kv_heads // self._heads_per_group)

    @property
    def row_bytes(self) -> int:
        """Bytes of one token's keys."""
        return self.groups * self._group_beats * numbers.BEAT_BYTES

    @property
    def exponent_bytes(self) -> int:
        """Bytes of one tile's exponents."""
        return -(-self.groups // numbers.EXPONENTS_PER_BEAT) * numbers.EXPONENTS_PER_BEAT

    @property
    def launches(self) -> int:
        """Launches that score all G queries: each takes up to 8 of a KV head."""
        return -(-self.group // _QUERIES_PER_LAUNCH)

    @property
    def shape(self) -> int:
        """The scalar ``shape``, the same for each of the launches."""
        banks = self._slots_per_pass * self.lanes // 32
        return shape_word(self._group_beats, self.pair, self._passes == 2, banks.bit_length() - 1, self.groups)

    def format(self, reduce: str) -> int:
        """The scalar ``format``; reduce is "max" or "sum"."""
        return _KEYS[self.keys] | (reduce == "sum") << numbers.FORMAT_SUM_BIT

    def pack_keys(self, keys: npt.NDArray[np.generic]) -> Beats:
        """Beats of keys [n, H, d]: float16 or its bits as uint16, or int8 (INT4 values are -8 ... 7)."""
        tokens = len(keys)
        if keys.shape[1:] != (self.kv_heads, self.head_dim):
            raise DeviceError(f"keys are {list(keys.shape)}, not [n, {self.kv_heads}, {self.head_dim}]")
        element = np.int8 if self._stored else np.uint16
        source = keys.view(np.uint16) if keys.dtype == np.float16 else keys
        if source.dtype != element:
            raise DeviceError(f"{self.keys} keys are {np.dtype(element)}, not {keys.dtype}")
        padded = np.zeros((tokens, self.groups * self._heads_per_group, self._padded_dim), element)
        padded[:, : self.kv_heads, : self.head_dim] = source
        if self.keys == "int4":
            nibbles = padded.view(np.uint8) & 15
            padded = nibbles[..., 0::2] | nibbles[..., 1::2] << 4
        return _beats(padded)

    def pack_exponents(self, exponents: npt.NDArray[np.int8]) -> Beats:
        """Beats of exponents int8 [tiles, H]."""
        tiles = len(exponents)
        if exponents.shape != (tiles, self.kv_heads) or exponents.dtype != np.int8:
            raise DeviceError(f"exponents are {exponents.dtype} {list(exponents.shape)}, not int8 [n, {self.kv_heads}]")
        of_group = exponents[:, :: self._heads_per_group]
        if self.pair and not np.array_equal(exponents[:, 1::2], of_group[:, : self.kv_heads // 2]):
            raise DeviceError("heads that share a beat have one exponent: cast them together")
        padded = np.zeros((tiles, self.exponent_bytes), np.int8)
        padded[:, : self.groups] = of_group
        return _beats(padded)

    def pack_query(self, query: QuantisedQuery) -> list[Beats]:
        """The query buffer of each launch: parameters, then queries."""
        if query.q8.shape != (self.kv_heads, self.group, self.head_dim):
            expected = f"[{self.kv_heads}, {self.group}, {self.head_dim}]"
            raise DeviceError(f"queries are {list(query.q8.shape)}, not {expected}")
        return [
            self._pack_queries(query, slice(start, min(start + _QUERIES_PER_LAUNCH, self.group)))
            for start in range(0, self.group, _QUERIES_PER_LAUNCH)
        ]

    def _pack_queries(self, query: QuantisedQuery, part: slice) -> Beats:
        count, heads = part.stop - part.start, self.groups * self._heads_per_group
        per_pass, passes = self._slots_per_pass, self._passes
        queries = np.zeros((heads, passes * per_pass, self._padded_dim), np.int8)
        queries[: self.kv_heads, :count, : self.head_dim] = query.q8[:, part]
        # [group, head of the group, pass, query, beat, lane] -> [group][beat][pass][query][head of the group][lane]
        split = queries.reshape(self.groups, self._heads_per_group, passes, per_pass, self._group_beats, -1)
        ordered = split.transpose(0, 4, 2, 3, 1, 5)

        slots = np.zeros((heads, passes * per_pass), _PARAMETER)
        held = slots[: self.kv_heads, :count]
        held["m"], held["r"], held["o"] = query.m[:, part], query.r[:, part], query.o[:, part]
        held["flags"][list(query.heads)] = 1 << numbers.FLAG_ENABLED_BIT
        parameters = np.zeros((self.groups, passes, numbers.SLOTS_PER_PASS), _PARAMETER)
        # A pass holds its queries one by one, of both heads of a pair for each.
        by_slot = slots.reshape(self.groups, self._heads_per_group, passes, per_pass).transpose(0, 2, 3, 1)
        parameters[:, :, : per_pass * self._heads_per_group] = by_slot.reshape(self.groups, passes, -1)
        return _beats(parameters, ordered)

    @property
    def _stored(self) -> bool:
        return self.keys in ("int8", "int4")

    @property
    def _heads_per_group(self) -> int:
        return 2 if self.pair else 1

    @property
    def _padded_dim(self) -> int:
        return self._group_beats * self.lanes // self._heads_per_group

    @property
    def _group_beats(self) -> int:
        return 1 if self.pair else -(-self.head_dim // self.lanes)

    @property
    def _passes(self) -> int:
        """Stored formats have multipliers for 4 queries of a KV head, and go over the keys twice for more."""
        return 2 if self._stored and min(self.group, _QUERIES_PER_LAUNCH) > 4 else 1

    @property
    def _slots_per_pass(self) -> int:
        """Queries of a KV head in each pass: a power of two, and at least what fills two banks."""
        queries = -(-min(self.group, _QUERIES_PER_LAUNCH) // self._passes)
        least = max(1, 64 // self.lanes)
        return max(least, 1 << (queries - 1).bit_length())


def _beats(*arrays: npt.NDArray[np.generic]) -> Beats:
    """The bytes of arrays that are whole beats, one behind the other, at an aligned address."""
    beats = aligned(sum(array.nbytes for array in arrays) // numbers.BEAT_BYTES)
    flat, start = beats.reshape(-1), 0
    for array in arrays:
        flat[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        start += array.nbytes
    return beats
