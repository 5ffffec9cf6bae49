"""Reading images: everything the writer put in, and one clear error for whatever is no whole image."""

from __future__ import annotations

import struct
import uuid

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hillinfer.csd.xclbin import find_scorer, read_image
from hillinfer.csd.xclbin.container import Container
from hillinfer.csd.xclbin.interfaces import interface_uuids
from hillinfer.errors import DeviceError
from scripts.hw_emu.xclbin import INTERFACE, Card, xclbin
from tests.csd.xclbin.conftest import REGISTERS, WHOLE

_TABLE = 456  # where the table of sections begins


@settings(deadline=None)
@given(
    st.integers(1, 1 << 36).map(lambda kilobytes: kilobytes << 10),
    st.integers(0, 1 << 50).map(lambda beats: beats * 64),
    st.uuids(),
    st.permutations(range(1, 40)),
)
def test_what_was_written_is_read(tmp_path_factory, nbytes, base, interface, places):
    path = tmp_path_factory.mktemp("image") / "image.xclbin"
    registers = dict(zip(REGISTERS, (16 * place for place in places), strict=False))
    card = Card(platform="xilinx_u50_gen3x16", interface=interface, memory_bytes=nbytes, memory_base=base)
    path.write_bytes(xclbin(registers, card))
    image = read_image(path)
    assert (image.mode, image.platform) == ("hw_emu", "xilinx_u50_gen3x16")
    assert image.interfaces == (() if interface.int == 0 else (interface,))
    (kernel,) = image.kernels
    assert (kernel.name, kernel.version, kernel.protocol) == ("qk_score", "1.0", "ap_ctrl_chain")
    assert {argument.name: argument.offset for argument in kernel.arguments} == registers
    (memory,) = image.memories
    assert (memory.tag, memory.base, memory.nbytes) == ("bank0", base, nbytes)
    (unit,) = image.units
    assert (unit.kernel, unit.name, unit.control) == ("qk_score", "qk_score_1", "ap_ctrl_chain")
    assert [image.memory_of(unit, argument) for argument in range(5)] == [memory] * 4 + [None]


def one_line(path) -> str | None:
    """What reading it says; None when it is an image."""
    said = None
    try:
        find_scorer(read_image(path))
    except DeviceError as error:
        said = str(error)
    assert said is None or ("\n" not in said and str(path) in said)
    return said


@settings(deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
@example(0)
@example(7)
@example(8)
@example(303)
@example(_TABLE)
def test_a_file_that_was_cut_off_says_so(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("image") / "image.xclbin"
    path.write_bytes(WHOLE[:length])
    said = one_line(path)
    assert said is not None
    assert "is cut off" in said or "bytes" in said or "is not an xclbin" in said


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=6))
def test_any_bytes_changed_are_an_image_or_one_error(tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("image") / "image.xclbin"
    data = bytearray(WHOLE)
    for at, new in changes:
        data[at : at + len(new)] = new[: len(data) - at]
    path.write_bytes(data)
    one_line(path)


@settings(deadline=None)
@given(st.integers(0, 4), st.sampled_from([0, 1, 8, 12, 40, 80, 1 << 20, 1 << 40, (1 << 64) - 1]), st.booleans())
def test_sections_of_any_size_and_place_are_an_image_or_one_error(tmp_path_factory, section, number, of_size):
    """The table's own numbers, which random bytes seldom hit in a telling way."""
    path = tmp_path_factory.mktemp("image") / "image.xclbin"
    data = bytearray(WHOLE)
    struct.pack_into("<Q", data, _TABLE + 40 * section + (32 if of_size else 24), number)
    path.write_bytes(data)
    one_line(path)


@settings(deadline=None)
@given(st.binary(max_size=600))
def test_foreign_files_are_one_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("image") / "image.xclbin"
    path.write_bytes(content)
    assert "is not an xclbin" in one_line(path) or "cut off" in one_line(path)


def test_what_is_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "gone.xclbin"):
        with pytest.raises(DeviceError, match="cannot be read"):
            Container(path)


def test_counts_that_do_not_fit_are_named(changed):
    with pytest.raises(DeviceError, match="CONNECTIVITY claims 900 entries"):
        changed((struct.pack("<iiii", 4, 0, 0, 0), struct.pack("<iiii", 900, 0, 0, 0)))
    with pytest.raises(DeviceError, match="connected to memory 9 of 1"):
        changed((struct.pack("<iiii", 4, 0, 0, 0), struct.pack("<iiii", 4, 0, 0, 9)))
    with pytest.raises(DeviceError, match="arg 'keys' has the offset '0x"):
        changed((b'offset="0x1c"', b'offset="0xzz"'))
    with pytest.raises(DeviceError, match="no XML"):
        changed((b"</project>", b"</protect>"))


# ---- the device tree that says which shell an image is for


def tree(nodes, extra=b""):
    """A flattened device tree with ``nodes`` {path: {property: value}}, of at most three levels."""
    strings = b""
    body = _begin("")
    for (outer, inner), properties in nodes.items():
        body += _begin(outer) + _begin(inner)
        for name, value in properties.items():
            body += struct.pack(">III", 3, len(value), len(strings)) + _pad(value) + struct.pack(">I", 4)
            strings += name.encode() + b"\0"
        body += struct.pack(">II", 2, 2)
    body += struct.pack(">II", 2, 9) + extra
    header = struct.pack(
        ">10I", 0xD00DFEED, 40 + len(body) + len(strings), 40, 40 + len(body), 40, 17, 16, 0, len(strings), len(body)
    )
    return header + body + strings


def _begin(name):
    return struct.pack(">I", 1) + _pad(name.encode() + b"\0")


def _pad(data):
    return data + b"\0" * (-len(data) % 4)


@settings(deadline=None)
@given(st.lists(st.uuids(), max_size=4), st.booleans())
def test_interfaces_are_those_under_interfaces(interfaces, dashes):
    nodes = {
        ("addressable_endpoints", "ep_0"): {"interface_uuid": b"0" * 32 + b"\0", "reg": b"\0\1\2"},
        **{
            ("interfaces", f"@plp_{i}"): {"interface_uuid": (str(u) if dashes else u.hex).encode() + b"\0", "x": b"1"}
            for i, u in enumerate(interfaces)
        },
    }
    assert interface_uuids(tree(nodes)) == tuple(interfaces)


@settings(deadline=None)
@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 3))
def test_a_broken_tree_is_a_value_error_or_a_tree(noise, at, cut):
    data = bytearray(tree({("interfaces", "a"): {"interface_uuid": INTERFACE.hex.encode() + b"\0"}}))
    data[at : at + len(noise)] = noise
    try:
        found = interface_uuids(bytes(data[: len(data) - cut]))
    except ValueError:
        return
    assert all(isinstance(each, uuid.UUID) for each in found)
