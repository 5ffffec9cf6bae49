"""Calls and answers on the wire, as XRT's shim reads and writes them."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.hw_emu import messages, wire
from scripts.hw_emu.errors import EmulationError
from scripts.hw_emu.messages import Api


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    with left, right:
        yield wire.Wire(left), wire.Wire(right), left, right


@given(st.integers(0, 2**64 - 1), st.binary(max_size=300), st.integers(0, 2**40))
def test_a_copy_survives_the_wire(address, data, offset):
    sent = messages.call(Api.TO_DEVICE, address=address, data=data, size=len(data), offset=offset)
    read = messages.call(Api.TO_DEVICE, sent.SerializeToString())
    assert (read.address, read.data, read.size, read.offset) == (address, data, len(data), offset)


def test_fields_that_are_not_in_the_schema_are_skipped():
    handle = b"\x12\x03abc"  # field 2, bytes: of every copy, and of no use
    address = b"\x18\x80\x20"  # field 3, varint
    assert messages.call(Api.TO_DEVICE, handle + address).address == 0x1000


def test_calls_and_answers_have_headers_of_fixed_length(ends):
    host, device, left, right = ends
    host.call(Api.FREE, b"payload")
    assert right.recv(100) == b"\x09" + (7).to_bytes(8, "little") + b"\x15" + (5).to_bytes(4, "little") + b"payload"
    device.answer(b"\x08\x01")
    assert left.recv(100) == b"\x09" + (2).to_bytes(8, "little") + b"\x08\x01"


def test_a_message_in_pieces_is_one_message(ends):
    host, device, left, _ = ends
    host.call(Api.LOAD, bytes(1000))
    whole = ends[3].recv(2000)
    for byte in range(0, len(whole), 97):
        left.sendall(whole[byte : byte + 97])
    assert device.receive() == (Api.LOAD, bytes(1000))


def test_an_end_in_the_middle_is_no_message(ends):
    _, device, left, _ = ends
    left.sendall(b"\x09\x01")
    left.close()
    assert device.receive() is None


def test_a_call_of_another_kind_is_told(ends):
    _, device, left, _ = ends
    left.sendall(b"\x09" + bytes(8) + b"\x15" + (22).to_bytes(4, "little"))
    with pytest.raises(EmulationError, match="call 22"):
        device.receive()


@pytest.mark.parametrize("api", [api for api in Api if api not in (Api.READ_TRACE, Api.BUS_STATUS)])
def test_every_answer_says_yes_where_it_can(api):
    assert messages.acknowledge(api).SerializeToString() in (b"", b"\x08\x01")


def test_sockets_lie_where_the_shim_puts_them():
    user = {"USER": "somebody", "EMULATION_SOCKETID": "device0_0_1"}
    assert str(wire.socket_path(user)) == "/tmp/somebody/device0_0_1"
    assert str(wire.socket_path(user, "D2X_unix_sock_")) == "/tmp/somebody/D2X_unix_sock_device0_0_1"
    assert str(wire.socket_path({"EMULATION_SOCKETID": "x"})) == "/tmp/xcl_sock"
