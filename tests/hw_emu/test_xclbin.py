"""The xclbin's writer, by the package's reader, which knows nothing of it, and by the headers' offsets."""

from __future__ import annotations

import io
import json
import struct
import uuid
import zipfile
from pathlib import Path

import pytest

from hillinfer.csd.xclbin import check_mode, find_scorer, read_image
from hillinfer.csd.xclbin.container import Container, Kind
from hillinfer.errors import DeviceError
from scripts.hw_emu import xclbin
from scripts.hw_emu.environment import registers
from scripts.hw_emu.xclbin import Card, write_xclbin
from tb.rtl import RegisterMap

REGISTERS = {name: 0x10 + 12 * place for place, name in enumerate((*xclbin.POINTERS, *xclbin.SCALARS))}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "qk_score.hw_emu.xclbin"


def test_the_reader_finds_what_was_written(path):
    card = Card("xilinx_u2_other_1", uuid.UUID(int=77), memory_bytes=3 << 20, memory_base=0x1000, clock_mhz=250)
    write_xclbin(path, REGISTERS, card)
    image = read_image(path)
    check_mode(image, "hw_emu")
    scorer = find_scorer(image)
    assert (image.mode, image.platform, image.interfaces) == ("hw_emu", card.platform, (card.interface,))
    assert (scorer.unit.name, scorer.unit.control, scorer.unit.base) == ("qk_score_1", "ap_ctrl_chain", xclbin.BASE)
    assert {(memory.tag, memory.base, memory.nbytes) for memory in scorer.memories} == {("bank0", 0x1000, 3 << 20)}
    (kernel,) = image.kernels
    assert {argument.name: argument.offset for argument in kernel.arguments} == REGISTERS
    assert [argument.pointer for argument in kernel.arguments] == [True] * 4 + [False] * 6


def test_the_bitstream_starts_the_device_process_with_the_kernels_registers(path):
    write_xclbin(path, REGISTERS)
    with Container(path) as container:
        archive = zipfile.ZipFile(io.BytesIO(container.section(Kind.BITSTREAM)))
    script, layout = "behav_waveform/xsim/simulate.sh", "behav_waveform/xsim/kernel.json"
    assert archive.namelist() == [script, layout]
    assert archive.getinfo(script).external_attr >> 16 == 0o755
    assert b'exec "$HW_EMU_DEVICE"' in archive.read(script)
    assert json.loads(archive.read(layout)) == {"base": xclbin.BASE, "registers": REGISTERS}


def test_the_metadata_is_a_kernel_xml_as_well(path, tmp_path):
    write_xclbin(path, REGISTERS)
    with Container(path) as container:
        (tmp_path / "kernel.xml").write_bytes(container.section(Kind.EMBEDDED_METADATA))
    assert RegisterMap.read(tmp_path / "kernel.xml") == REGISTERS


def test_the_header_is_that_of_xclbin_h(path):
    write_xclbin(path, REGISTERS)
    data = path.read_bytes()
    assert data[:8] == b"xclbin2\0"
    assert struct.unpack_from("<i", data, 8) == (-1,)  # not signed
    assert struct.unpack_from("<Q", data, 304) == (len(data),)
    assert struct.unpack_from("<I", data, 448) == (5,)  # sections
    for place in range(5):
        offset, size = struct.unpack_from("<QQ", data, 456 + 40 * place + 24)
        assert offset % 8 == 0
        assert offset + size <= len(data)


def test_the_same_input_is_the_same_image_and_another_one_has_another_uuid(path, tmp_path):
    write_xclbin(path, REGISTERS)
    other = tmp_path / "other.xclbin"
    write_xclbin(other, REGISTERS)
    assert path.read_bytes() == other.read_bytes()
    write_xclbin(other, REGISTERS | {"tag": 0x100})
    assert read_image(path).uuid != read_image(other).uuid


def test_another_kernel_and_moved_registers_are_seen(path):
    write_xclbin(path, REGISTERS, kernel="addone")
    with pytest.raises(DeviceError, match="addone"):
        find_scorer(read_image(path))


def test_the_open_flows_registers_are_those_of_the_build(path):
    offsets = registers()
    write_xclbin(path, offsets)
    (kernel,) = read_image(path).kernels
    assert all(argument.offset == offsets[argument.name] for argument in kernel.arguments)
