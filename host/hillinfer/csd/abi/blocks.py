"""Score Blocks as bytes (docs/kernel.md, "blocks").

A block is a slot of 65 beats of 64 bytes: 64 beats of 16 tuples, then a trailer beat, written last.
A tuple is 4 bytes: uint16 offset in the block, int16 score. Padding is 0xFFFFFFFF.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi.numbers import (
    BLOCK_TOKENS,
    MAGIC,
    NO_SCORE,
    SLOT_BEATS,
    STATUS_FORMAT,
    STATUS_SHAPE,
    STATUS_TOKENS,
)
from hillinfer.csd.abi.numbers import PADDING as _PADDING
from hillinfer.errors import DeviceError

Words = npt.NDArray[np.uint32]

TUPLE_WORDS = BLOCK_TOKENS
SLOT_WORDS = SLOT_BEATS * 16
PADDING = np.uint32(_PADDING)
_OFFSETS = np.arange(BLOCK_TOKENS, dtype=np.uint16)
_STATUS = {STATUS_TOKENS: "number of tokens", STATUS_SHAPE: "shape", STATUS_FORMAT: "format"}


@dataclass(frozen=True)
class ScoreBlock:
    """The scores of up to 1024 consecutive tokens.

    first      position of the block's first token
    offsets    uint16 [emitted], ascending, from ``first``; scores int16 [emitted]: views of the slot
    scanned    tokens scored, of which those under the launch's min_score were left out
    index, of  which block of how many of its launch
    """

    first: int
    offsets: npt.NDArray[np.uint16]
    scores: npt.NDArray[np.int16]
    scanned: int
    index: int
    of: int

    @property
    def positions(self) -> npt.NDArray[np.int64]:
        """Positions int64 [emitted]."""
        return self.offsets.astype(np.int64) + self.first


def _tuples(slot: Words) -> npt.NDArray[np.uint16]:
    """The tuples of a slot as uint16 [1024, 2]: offset, score. Little-endian, as the kernel writes them."""
    return slot[:TUPLE_WORDS].view("<u2").reshape(TUPLE_WORDS, 2)


def pack_block(
    scores: npt.NDArray[np.int16], first: int, tag: int, index: int, of: int, min_score: int = NO_SCORE
) -> Words:
    """One slot, uint32 [1040], of the scores int16 [n ≤ 1024] of tokens first, first + 1, …"""
    slot = np.zeros(SLOT_WORDS, np.uint32)
    offsets, kept = _OFFSETS[: len(scores)], scores
    if min_score > NO_SCORE:
        above = scores >= min_score
        offsets, kept = offsets[above], scores[above]
    emitted = len(kept)
    tuples = _tuples(slot)
    tuples[:emitted, 0] = offsets
    tuples[:emitted, 1] = kept.view(np.uint16)
    slot[emitted:TUPLE_WORDS] = PADDING
    top = int(scores.max()) if len(scores) else NO_SCORE
    trailer = slot[TUPLE_WORDS:]
    trailer[:9] = (MAGIC, tag, first, len(scores), emitted, top & 0xFFFFFFFF, 0, index, of)
    trailer[15] = ~tag & 0xFFFFFFFF
    return slot


def unpack_block(slot: Words, tag: int) -> ScoreBlock:
    """Read one slot that the launch ``tag`` wrote; DeviceError says what is wrong with one that is not whole."""
    trailer = slot[TUPLE_WORDS:].tolist()
    magic, found, first, scanned, emitted, _, status, index, of = trailer[:9]
    if magic != MAGIC or found != tag or trailer[15] != ~tag & 0xFFFFFFFF:
        raise DeviceError(
            f"the device returned a Score Block that is torn or of another launch "
            f"(magic {magic:#x}, tag {found}, expected {tag})"
        )
    if status:
        wrong = ", ".join(name for bit, name in _STATUS.items() if status & bit) or f"status {status}"
        raise DeviceError(f"the device refused a launch: illegal {wrong}")
    if not emitted <= scanned <= BLOCK_TOKENS:
        raise DeviceError(f"the device returned a Score Block with {emitted} tuples of {scanned} tokens")
    tuples = _tuples(slot)[:emitted]
    offsets, scores = tuples[:, 0], tuples[:, 1].view(np.int16)
    if emitted == scanned:
        ascending = np.array_equal(offsets, _OFFSETS[:emitted])
    else:
        ascending = offsets[-1:].max(initial=0) < scanned and bool((offsets[1:] > offsets[:-1]).all())
    if not ascending:
        raise DeviceError("the device returned a Score Block whose offsets are not ascending")
    return ScoreBlock(first, offsets, scores, scanned, index, of)


def unpack_scores(slots: Words, first: int, tokens: int, tag: int) -> npt.NDArray[np.int16]:
    """Scores int16 [tokens] of a whole launch from its slots uint32 [n, 1040], a copy; all blocks checked at once.

    The launch began at ``first`` and left nothing out. DeviceError says what is wrong with a block that is not whole,
    or in the wrong place.
    """
    count = len(slots)
    expected = np.zeros((count, SLOT_WORDS - TUPLE_WORDS), np.uint32)
    expected[:, 0], expected[:, 1], expected[:, 15] = MAGIC, tag, ~tag & 0xFFFFFFFF
    expected[:, 2] = np.arange(first, first + count * BLOCK_TOKENS, BLOCK_TOKENS)
    expected[:, 3] = expected[:, 4] = np.minimum(BLOCK_TOKENS, tokens - np.arange(count) * BLOCK_TOKENS)
    expected[:, 7], expected[:, 8] = np.arange(count), count
    expected[:, 5] = slots[:, TUPLE_WORDS + 5]  # the maximum: anything
    tuples = slots[:, :TUPLE_WORDS].view("<u2").reshape(count, BLOCK_TOKENS, 2)
    offsets, rest = tuples[..., 0], tokens - (count - 1) * BLOCK_TOKENS
    ascending = (offsets[:-1] == _OFFSETS).all() and (offsets[-1, :rest] == _OFFSETS[:rest]).all()
    if not (ascending and np.array_equal(slots[:, TUPLE_WORDS:], expected)):
        raise _what_is_wrong(slots, expected, tag)
    return tuples[..., 1].reshape(-1)[:tokens].view(np.int16)


def _what_is_wrong(slots: Words, expected: Words, tag: int) -> DeviceError:
    """The error for slots of which at least one is not what was expected."""
    for slot, trailer in zip(slots, expected, strict=True):
        try:
            block = unpack_block(slot, tag)
        except DeviceError as error:
            return error
        due = trailer.tolist()
        place, found = (due[2], due[3], due[7], due[8]), (block.first, block.scanned, block.index, block.of)
        if place != found:
            return DeviceError(f"the device returned a Score Block of {found} where one of {place} was due")
        if len(block.scores) != block.scanned:
            return DeviceError(f"the device left out scores of tokens {block.first}-{block.first + block.scanned - 1}")
    return DeviceError("the device returned a trailer with bits that mean nothing")
