"""Every number of hls/qk_abi.h, under its name there without ``QK_``; a test compiles that file and compares.

Formats, statuses and trailer offsets are int; bit positions are those of the scalars ``shape`` and ``format``.
"""

from __future__ import annotations

from typing import Final

ABI_VERSION: Final = 1

BEAT_BYTES: Final = 64
MAX_TOKENS: Final = 1 << 20
TILE_TOKENS: Final = 64
BLOCK_TOKENS: Final = 1024
TUPLE_BYTES: Final = 4
TUPLES_PER_BEAT: Final = 16
TUPLE_BEATS: Final = 64
SLOT_BEATS: Final = 65
MAX_ROW_PASSES: Final = 256
EXPONENTS_PER_BEAT: Final = 64
EXPONENT_MIN: Final = -16
EXPONENT_MAX: Final = 15
SHIFT_MAX: Final = 40
SLOTS_PER_PASS: Final = 8

SHAPE_BEATS_BIT: Final = 0
SHAPE_BEATS_BITS: Final = 4
SHAPE_PAIR_BIT: Final = 4
SHAPE_DUAL_BIT: Final = 5
SHAPE_BANKS_BIT: Final = 8
SHAPE_BANKS_BITS: Final = 3
SHAPE_GROUPS_BIT: Final = 16
SHAPE_GROUPS_BITS: Final = 9

FORMAT_KEYS_BIT: Final = 0
FORMAT_KEYS_BITS: Final = 2
FORMAT_SUM_BIT: Final = 4
FP16_INT8: Final = 0
FP16_INT4: Final = 1
INT8: Final = 2
INT4: Final = 3

PARAM_BYTES: Final = 8
PARAM_M: Final = 0
PARAM_R: Final = 2
PARAM_FLAGS: Final = 3
PARAM_O: Final = 4
FLAG_ENABLED_BIT: Final = 0

TRAILER_MAGIC: Final = 0
TRAILER_TAG: Final = 4
TRAILER_FIRST_TOKEN: Final = 8
TRAILER_SCANNED: Final = 12
TRAILER_EMITTED: Final = 16
TRAILER_MAXIMUM: Final = 20
TRAILER_STATUS: Final = 24
TRAILER_INDEX: Final = 28
TRAILER_COUNT: Final = 32
TRAILER_NOT_TAG: Final = 60
MAGIC: Final = 0x31534B51
NO_SCORE: Final = -32768

STATUS_TOKENS: Final = 1
STATUS_SHAPE: Final = 2
STATUS_FORMAT: Final = 4

PADDING: Final = 0xFFFFFFFF
