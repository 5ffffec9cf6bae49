"""The card's memory against a plain model of it: a byte for each byte, and whether it was written."""

from __future__ import annotations

import mmap
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.hw_emu.errors import CardError
from scripts.hw_emu.memory import WORD, Memory

BASE, SIZE = 0x4000_0000, 8 * WORD + 10

steps = st.lists(st.tuples(st.booleans(), st.integers(0, SIZE + 70), st.integers(0, 200)), max_size=20)


@given(steps)
def test_it_keeps_what_was_written_and_refuses_the_rest(steps):
    memory = Memory()
    memory.allocate(BASE, SIZE)
    model: list[int | None] = [None] * SIZE

    def words(start, size):
        return range(start // WORD * WORD, min(SIZE, -(-(start + size) // WORD) * WORD))

    for number, (writing, start, size) in enumerate(steps):
        outside = start + size > SIZE
        if writing:
            cut = [at for at in words(start, size) if not start <= at < start + size] if size else []
            data = bytes([number % 251]) * size
            if size and (outside or any(model[at] is None for at in cut)):
                with pytest.raises(CardError):
                    memory.write(BASE + start, data)
            else:
                memory.write(BASE + start, data)
                model[start : start + size] = data
        elif outside or any(model[at] is None for at in words(start, size) if size):
            with pytest.raises(CardError):
                memory.read(BASE + start, size)
        else:
            assert memory.read(BASE + start, size) == bytes(model[start : start + size])
    memory.close()


def test_a_read_of_what_was_never_written_names_the_place():
    memory = Memory()
    memory.allocate(BASE, 4096)
    memory.write(BASE, bytes(2 * WORD))
    with pytest.raises(CardError, match=f"ECC error at {BASE + 2 * WORD:#x}"):
        memory.read(BASE, 4096)


def test_nothing_reaches_from_one_buffer_into_the_next():
    memory = Memory()
    for place in range(3):
        memory.allocate(BASE + 4096 * place, 4096)
    memory.write(BASE + 4096, bytes(4096))
    with pytest.raises(CardError, match="outside"):
        memory.read(BASE + 4096 + WORD, 4096)
    memory.free(BASE + 4096)
    with pytest.raises(CardError, match="outside"):
        memory.read(BASE + 4096, WORD)
    with pytest.raises(CardError, match="freed"):
        memory.free(BASE + 4096)
    with pytest.raises(CardError, match="second time"):
        memory.allocate(BASE, 4096)
    memory.close()


def test_memory_that_was_freed_is_unwritten_again():
    memory = Memory()
    memory.allocate(BASE, 4096)
    memory.write(BASE, bytes(4096))
    memory.free(BASE)
    memory.allocate(BASE, 4096)
    with pytest.raises(CardError, match="ECC"):
        memory.read(BASE, WORD)


def test_a_p2p_buffer_is_a_file_that_the_host_maps_and_writes():
    memory = Memory()
    name = memory.allocate(BASE, 8192, p2p=True)
    with pytest.raises(CardError, match="ECC"):
        memory.read(BASE, WORD)
    file = os.open(name, os.O_RDWR)
    with mmap.mmap(file, 8192) as mapped:
        mapped[:4096] = bytes(range(256)) * 16
    os.close(file)
    assert memory.read(BASE, 4096) == bytes(range(256)) * 16
    with pytest.raises(CardError, match=f"{BASE + 4096:#x}"):
        memory.read(BASE, 4097)
    memory.close()


def test_memory_that_is_looked_at_outlives_its_buffer():
    memory = Memory()
    memory.allocate(BASE, 4096)
    memory.write(BASE, b"x" * 4096)
    view = memory.reading(BASE, 4096)
    memory.free(BASE)
    assert bytes(view) == b"x" * 4096
