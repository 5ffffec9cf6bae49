"""The kernel's ABI, version 1 (docs/kernel.md): the Python side of hls/qk_abi.h. Nothing else packs or unpacks bits.

numbers   every number shared with the kernel
launch    the scalars of a launch: checked, and what they say about sizes
layout    keys, exponents and queries as the kernel reads them
blocks    Score Blocks as it writes them
"""

from hillinfer.csd.abi.blocks import (
    PADDING,
    SLOT_WORDS,
    TUPLE_WORDS,
    ScoreBlock,
    Words,
    pack_block,
    unpack_block,
    unpack_scores,
)
from hillinfer.csd.abi.launch import Launch, aligned
from hillinfer.csd.abi.layout import Layout

__all__ = [
    "PADDING",
    "SLOT_WORDS",
    "TUPLE_WORDS",
    "Launch",
    "Layout",
    "ScoreBlock",
    "Words",
    "aligned",
    "pack_block",
    "unpack_block",
    "unpack_scores",
]
