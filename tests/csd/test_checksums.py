"""Checksums of rows: the standard CRC-32C, and that damage changes them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hillinfer import _native


@given(st.binary(max_size=300))
def test_crc32c_is_the_standard_one(data):
    assert _native.crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    assert _native.crc32c(data) == crc ^ 0xFFFFFFFF


@given(st.binary(min_size=64, max_size=256), st.integers(0, 255), st.integers(0, 7))
def test_every_flipped_bit_changes_a_checksum(data, byte, bit):
    row = np.frombuffer(data, np.uint8)[None].copy()
    before = _native.checksums(row)
    row[0, byte % row.shape[1]] ^= 1 << bit
    assert _native.checksums(row) != before
