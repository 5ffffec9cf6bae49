"""The kernel's C++ on the same bytes: the second witness beside the NumPy model."""

from __future__ import annotations

import numpy as np

from hillinfer.csd import native
from hillinfer.csd.abi import aligned
from tb.qk_model import BEAT_BYTES
from tb.qk_score.cases import Launch


def native_blocks(launch: Launch) -> bytes:
    """The Score Blocks that the native library writes, and nothing behind them; AssertionError if it does."""
    query, keys, exps = (_in_beats(image) for image in (launch.query, launch.keys, launch.exps))
    size = len(launch.expected)
    blocks = _in_beats(bytes([0x55]) * (size + 4096))
    scalars = (launch.n_tokens, launch.first_token, launch.shape, launch.format, launch.min_score, launch.tag)
    addresses = (query.ctypes.data, keys.ctypes.data, exps.ctypes.data, blocks.ctypes.data)
    native.load().run(*addresses, scalars)
    written, guard = blocks.tobytes()[:size], blocks.tobytes()[size:]
    assert guard == bytes([0x55]) * len(guard), f"{launch.name}: the native library wrote behind the Score Blocks"
    return written


def _in_beats(image: bytes) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """The bytes at an address that is a multiple of a beat."""
    beats = aligned(len(image) // BEAT_BYTES)
    beats[:] = np.frombuffer(image, np.uint8).reshape(beats.shape)
    return beats
