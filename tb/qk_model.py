"""NumPy model of the scoring kernel ``qk_score``, written from kernel.md alone.

It is the independent witness of the C++ kernel: plain, slow, and sharing no code, header or constant with it.
Each function is one sentence of the contract: cast, logits, scores, blocks. Names of axes in the shapes:

    n      tokens of one launch              H  KV heads (the kernel's groups)
    tiles  ceil(n / 64), one exponent each   G  queries per KV head
    d      elements per head

Arithmetic is int64 throughout, which holds every intermediate value exactly; the one exception is the FP16
cast, whose float64 steps (a product with a power of two, then a rounding to an integer) are exact as well.
Where the contract leaves a value open, a comment that starts with "Open:" says what this model takes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer[Any]]
Int64s = npt.NDArray[np.int64]
Int16s = npt.NDArray[np.int16]
Bools = npt.NDArray[np.bool_]

INT8_LIMIT = 127
INT4_LIMIT = 7
EXPONENT_MIN, EXPONENT_MAX = -16, 15
SHIFT_MAX = 40
TILE_TOKENS = 64

MAX_TOKENS = 1 << 20
BEAT_BYTES = 64
BLOCK_TOKENS = 1024
TUPLE_BYTES = 4
TUPLES_BYTES = BLOCK_TOKENS * TUPLE_BYTES
SLOT_BYTES = TUPLES_BYTES + BEAT_BYTES
PADDING_TUPLE = 0xFFFFFFFF
MAGIC = 0x31534B51
SCORE_MIN = -32768
STATUS_TOKENS, STATUS_SHAPE, STATUS_FORMAT = 1, 2, 4

_UINT32 = 0xFFFFFFFF
# magic, tag, first token, scanned, emitted, maximum, status, block index, block count, zeros, ~tag
_TRAILER = struct.Struct("<5Ii3I24sI")


# ---------------------------------------------------------------------------------------------------- numbers


def cast_fp16(bits: npt.NDArray[np.uint16], exponent: int | Integers, limit: int) -> Int64s:
    """FP16 to a small integer: round half to even of ``k * 2**exponent``, saturated to ``[-limit, limit]``.

    bits: uint16, any shape, the FP16 bit patterns. exponent: integers that broadcast against bits, clamped to
    -16..15 as the kernel clamps them. limit: 127 for INT8, 7 for INT4. Returns int64, the broadcast shape.
    NaN (quiet or signalling, either sign) gives 0, an infinity saturates, -0 gives 0.
    """
    if bits.dtype != np.uint16:
        raise ValueError(f"bits must be uint16 FP16 patterns, not {bits.dtype}")
    with np.errstate(invalid="ignore"):  # a signalling NaN may raise the flag when it is widened
        value = bits.view(np.float16).astype(np.float64)
        # Finite values stay within 2**-40 .. 2**31 with 11 significant bits: exact in float64.
        scaled = np.ldexp(value, _clamp_exponent(np.asarray(exponent)))
    rounded = np.rint(scaled)  # rint rounds half to even
    saturated = np.clip(rounded, -limit, limit)
    return np.asarray(np.where(np.isnan(saturated), 0.0, saturated)).astype(np.int64)


def token_exponents(exponents: Integers, n: int) -> Int64s:
    """The exponent that each token uses: int [tiles, H] -> int64 [n, H], clamped to -16..15."""
    tiles = -(-n // TILE_TOKENS)
    if exponents.ndim != 2 or exponents.shape[0] != tiles:
        raise ValueError(f"exponents of {n} tokens must be [{tiles}, H], not {list(exponents.shape)}")
    tile_of_token = np.arange(n) // TILE_TOKENS
    return _clamp_exponent(exponents)[tile_of_token]


def logits(q8: Integers, keys: Integers, exponents: Integers, m: Integers, r: Integers) -> Int64s:
    """``t = saturate24((s * m) >> clamp(r + e, 0, 40))`` with ``s = sum_i q8[i] * key[i]``, in 1/256 nat.

    q8: int [H, G, d] in INT8. keys: int [n, H, d], stored INT8 or INT4, or FP16 after cast_fp16. exponents:
    int8 [tiles, H], one for 64 tokens of a head. m: uint16 [H, G]. r: uint8 [H, G], 0..63. Returns int64
    [n, H, G]. The shift is arithmetic: it rounds towards minus infinity.
    """
    n, heads, _ = keys.shape
    _require_range("q8", q8, -128, 127)
    _require_range("keys", keys, -128, 127)
    _require_range("m", m, 0, 65535)
    _require_range("r", r, 0, 63)  # Open: an r of 64..255 fits its byte; the contract gives it no meaning.
    if q8.shape[0] != heads or q8.shape[2] != keys.shape[2]:
        raise ValueError(f"q8 {list(q8.shape)} and keys {list(keys.shape)} differ in heads or head dimension")
    if not q8.shape[:2] == m.shape == r.shape:
        raise ValueError(f"m {list(m.shape)} and r {list(r.shape)} must be [H, G] = {list(q8.shape[:2])}")
    exponent = token_exponents(exponents, n)
    if exponent.shape[1] != heads:
        raise ValueError(f"exponents have {exponent.shape[1]} heads, keys {heads}")

    # Open: s is exact here. 512 products of -128 and -128 are 2**23, one more than the contract's 24 bits
    # hold; no other operands get there, and the host's absmax quantisation makes no query of -128.
    dot = np.einsum("hgd,nhd->nhg", q8.astype(np.int64), keys.astype(np.int64))
    shift = np.clip(r.astype(np.int64) + exponent[:, :, None], 0, SHIFT_MAX)
    return _saturate((dot * m.astype(np.int64)) >> shift, bits=24)


def scores(
    q8: Integers,
    keys: Integers,
    exponents: Integers,
    m: Integers,
    r: Integers,
    o: Integers,
    enabled: Bools,
    reduce: Literal["max", "sum"] = "max",
) -> Int16s:
    """One int16 score per token: max or sum of ``u = t - o`` over the enabled queries of all heads, clamped.

    q8, keys, exponents, m, r: as in logits. o: int32 [H, G], the log-normaliser, of which the low 24 bits
    count. enabled: bool [H, G]. Returns int16 [n]. Neither u nor the sum saturates on the way: the clamp to
    int16 is the last step.
    """
    if not q8.shape[:2] == o.shape == enabled.shape:
        raise ValueError(f"o {list(o.shape)} and enabled {list(enabled.shape)} must be {list(q8.shape[:2])}")
    # Open: the low 24 bits are read as a signed number, the format of t.
    normaliser = (o.astype(np.int64) + (1 << 23)) % (1 << 24) - (1 << 23)
    u = logits(q8, keys, exponents, m, r) - normaliser

    of_enabled = u[:, enabled.astype(bool)]  # [n, number of enabled queries]
    # Open: over nothing enabled each reduction is its neutral element after the clamp: the sum 0, the max
    # -32768 (as the trailer's maximum over nothing scanned is).
    if reduce == "sum":
        total = of_enabled.sum(axis=1)
    elif reduce == "max":
        total = of_enabled.max(axis=1, initial=SCORE_MIN)
    else:
        raise ValueError(f'reduce must be "max" or "sum", not {reduce!r}')
    return _saturate(total, bits=16).astype(np.int16)


# ----------------------------------------------------------------------------------------------------- blocks


def score_blocks(scores: Int16s, first_token: int, tag: int, min_score: int, status: int = 0) -> bytes:
    """The Score Block slots that one launch writes: max(1, ceil(n / 1024)) slots of 65 beats of 64 bytes.

    scores: int16 [n]. first_token, tag: 32-bit scalars. min_score: tuples below it are left out. status: not
    0 for illegal arguments, which write one slot with nothing scanned, whatever the scores.
    """
    if scores.dtype != np.int16 or scores.ndim != 1:
        raise ValueError(f"scores must be int16 [n], not {scores.dtype} {list(scores.shape)}")
    # Open: n = 0 is within the limits, so its one slot has status 0.
    scanned = scores if status == 0 else scores[:0]
    if len(scanned) > MAX_TOKENS:
        raise ValueError(f"{len(scanned)} tokens exceed {MAX_TOKENS}: the kernel would answer status 1")
    count = max(1, -(-len(scanned) // BLOCK_TOKENS))
    slots = []
    for index in range(count):
        start = index * BLOCK_TOKENS
        block = scanned[start : start + BLOCK_TOKENS]
        kept = np.flatnonzero(block.astype(np.int64) >= min_score)
        trailer = _TRAILER.pack(
            MAGIC,
            tag & _UINT32,
            (first_token + start) & _UINT32,
            len(block),
            len(kept),
            # Open: "all scanned" is this block's tokens, those left out included, after the clamp to int16.
            int(block.max(initial=SCORE_MIN)),
            status,
            index,
            count,
            bytes(24),
            ~tag & _UINT32,
        )
        slots.append(_tuples(kept, block[kept]) + trailer)
    return b"".join(slots)


@dataclass(frozen=True, eq=False)
class Block:
    """One Score Block slot: the tuples that were kept, and the trailer's fields."""

    positions: Int64s  # [emitted], absolute: first_token + offset in the block
    scores: Int16s  # [emitted]
    tag: int  # as uint32
    first_token: int  # the block's, not the launch's; as uint32
    scanned: int
    emitted: int
    maximum: int
    status: int
    index: int
    count: int


def parse_blocks(data: bytes) -> list[Block]:
    """Reads consecutive slots, all of a launch or a run of them; ValueError names the slot and what is wrong.

    Every rule of the layout is checked that a slot can break alone (magic, tag against ~tag, counts, order of
    the tuples, padding, zero bytes, maximum), and that slots follow one another within one launch.
    """
    if not data or len(data) % SLOT_BYTES:
        raise ValueError(f"{len(data)} bytes are not a whole number, at least 1, of {SLOT_BYTES}-byte slots")
    blocks: list[Block] = []
    for start in range(0, len(data), SLOT_BYTES):
        where = f"slot {start // SLOT_BYTES}"
        block = _parse_slot(data[start : start + SLOT_BYTES], where)
        if blocks:
            _require_successor(blocks[-1], block, where)
        blocks.append(block)
    return blocks


def _parse_slot(slot: bytes, where: str) -> Block:
    fields = _TRAILER.unpack(slot[TUPLES_BYTES:])
    magic, tag, first_token, scanned, emitted, maximum, status, index, count, zeros, inverted_tag = fields
    if magic != MAGIC:
        raise ValueError(f"{where}: magic is 0x{magic:08X}, not 0x{MAGIC:08X}")
    if tag != ~inverted_tag & _UINT32:
        raise ValueError(f"{where}: torn read: tag is 0x{tag:08X}, ~tag 0x{inverted_tag:08X}")
    if any(zeros):
        raise ValueError(f"{where}: trailer bytes 36-59 are not zero")
    if index >= count:
        raise ValueError(f"{where}: block index {index} is not below the number of blocks {count}")
    if scanned > BLOCK_TOKENS or (scanned < BLOCK_TOKENS and index < count - 1):
        raise ValueError(f"{where}: scanned is {scanned} in block {index} of {count}")
    if emitted > scanned:
        raise ValueError(f"{where}: emitted {emitted} is more than scanned {scanned}")
    if status and (scanned or count != 1):
        raise ValueError(f"{where}: status {status}, yet scanned is {scanned}, number of blocks {count}")

    halves = np.frombuffer(slot[:TUPLES_BYTES], dtype="<u2").reshape(BLOCK_TOKENS, 2)
    offsets = halves[:emitted, 0].astype(np.int64)
    kept_scores = halves[:emitted, 1].astype(np.uint16).view(np.int16)
    if np.any(halves[emitted:] != 0xFFFF):
        raise ValueError(f"{where}: a tuple after the {emitted} emitted is not padding")
    if np.any(np.diff(offsets) <= 0) or np.any(offsets >= scanned):
        raise ValueError(f"{where}: tuple offsets do not ascend below scanned {scanned}")
    # A tuple that was kept is at or above min_score, so the block's maximum was kept with it.
    if emitted and maximum != kept_scores.max():
        raise ValueError(f"{where}: maximum is {maximum}, the largest emitted score {kept_scores.max()}")
    if not scanned and maximum != SCORE_MIN:
        raise ValueError(f"{where}: maximum of nothing scanned is {maximum}, not {SCORE_MIN}")

    positions = first_token + offsets
    return Block(positions, kept_scores, tag, first_token, scanned, emitted, maximum, status, index, count)


def _require_successor(before: Block, block: Block, where: str) -> None:
    for name, actual, expected in (
        ("tag", block.tag, before.tag),
        ("number of blocks", block.count, before.count),
        ("block index", block.index, before.index + 1),
        ("first_token", block.first_token, (before.first_token + BLOCK_TOKENS) & _UINT32),
    ):
        if actual != expected:
            raise ValueError(f"{where}: {name} is {actual}, {expected} would follow the slot before")


# ---------------------------------------------------------------------------------------------------- helpers


def _tuples(offsets: Int64s, kept_scores: Int16s) -> bytes:
    """64 beats of 1024 tuples (uint16 offset, int16 score), little-endian, padded with 0xFFFFFFFF."""
    tuples = np.full(BLOCK_TOKENS, PADDING_TUPLE, dtype="<u4")
    tuples[: len(offsets)] = offsets | (kept_scores.astype(np.int64) & 0xFFFF) << 16
    return tuples.tobytes()


def _clamp_exponent(exponent: Integers) -> Int64s:
    return np.clip(exponent.astype(np.int64), EXPONENT_MIN, EXPONENT_MAX)


def _saturate(values: Int64s, bits: int) -> Int64s:
    """Clamps to the range of a signed number of so many bits."""
    return np.clip(values, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _require_range(name: str, values: Integers, low: int, high: int) -> None:
    if values.size and (values.min() < low or values.max() > high):
        raise ValueError(f"{name} spans {values.min()}..{values.max()}, outside {low}..{high}")
