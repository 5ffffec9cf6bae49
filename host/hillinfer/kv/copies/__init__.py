"""Scoring copies: what of the keys is scanned at every step, in the place of the keys that are attended.

int8           the kernel's own cast, one byte per element
int4           each channel centred, half a byte per element
projected/n    the leading d/n axes along which a stream's queries tell its keys apart, half a byte each

All but INT8 are fitted to a stream's own keys and queries, once a prompt has been read (docs/decisions/0038).
"""

from hillinfer.kv.copies.base import CopyKind, ScoringCopy
from hillinfer.kv.copies.moments import KeyMoments
from hillinfer.kv.copies.registry import KINDS

__all__ = ["KINDS", "CopyKind", "KeyMoments", "ScoringCopy"]
