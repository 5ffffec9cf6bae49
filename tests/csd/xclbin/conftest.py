"""An image as the emulation writes them, with the register offsets of Vitis's builds."""

from __future__ import annotations

import pytest

from hillinfer.csd.xclbin import read_image
from hillinfer.csd.xclbin.checks import POINTERS, SCALARS
from scripts.hw_emu.xclbin import Card, xclbin

REGISTERS = {name: 0x10 + 12 * i for i, name in enumerate(POINTERS)}
REGISTERS |= {name: 0x40 + 8 * i for i, name in enumerate(SCALARS)}
WHOLE = xclbin(REGISTERS, Card())


@pytest.fixture
def changed(tmp_path):
    """Reads the image after ``old`` bytes of it were replaced by as many ``new`` ones."""

    def read(*changes: tuple[bytes, bytes]):
        data = WHOLE
        for old, new in changes:
            assert old in data
            assert len(old) == len(new)
            data = data.replace(old, new)
        path = tmp_path / "image.xclbin"
        path.write_bytes(data)
        return read_image(path)

    return read
