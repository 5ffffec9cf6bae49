"""pyxrt on an emulated card: every name of it that a driver uses, and what a card does about mistakes."""

from __future__ import annotations

import os

import numpy as np
import pytest
import pyxrt

from tests.emulated.card import FROM, STATE, TO, Card
from tests.hw_emu.cards import example


@pytest.fixture(scope="module")
def card():
    return Card()


def test_the_xclbin_says_what_it_is(card):
    image = pyxrt.xclbin(os.environ["HILLINFER_XCLBIN"])
    assert [kernel.get_name() for kernel in image.get_kernels()] == ["qk_score"]
    assert image.get_kernels()[0].get_num_args() == 10
    assert [unit.get_name() for unit in image.get_ips()] == ["qk_score:qk_score_1"]
    (bank,) = image.get_mems()
    assert (bank.get_tag(), bank.get_size_kb(), bank.get_used(), bank.get_index()) == ("bank0", 4 << 20, True, 0)
    assert image.get_uuid().to_string() == card.uuid.to_string() == card.device.get_xclbin_uuid().to_string()
    assert image.get_xsa_name() == card.device.get_info(pyxrt.xrt_info_device.name)
    assert [card.kernel.group_id(argument) for argument in range(4)] == [0] * 4


@pytest.mark.parametrize(("tokens", "tag"), [(1, 1), (1000, -2), (5000, 2**31 - 1)])
def test_a_launch_gives_what_the_kernel_gives(card, tokens, tag):
    launch = example(tokens, tag)
    assert card.blocks(launch) == launch.blocks.tobytes()


def test_launches_are_queued_and_done_in_order(card):
    launches = [example(200, tag) for tag in range(8)]
    prepared = [card.prepare(launch) for launch in launches]
    for run, _, _ in prepared:
        run.start()
    assert prepared[-1][0].wait(10_000) == STATE.ERT_CMD_STATE_COMPLETED
    for launch, (run, buffers, view) in zip(launches, prepared, strict=True):
        assert run.state() == STATE.ERT_CMD_STATE_COMPLETED
        buffers[-1].sync(FROM, launch.blocks.size, 0)
        assert view.tobytes() == launch.blocks.tobytes()


def test_calling_the_kernel_is_a_run_that_is_started(card):
    launch = example()
    _, buffers, view = card.prepare(launch)
    run = card.kernel(*buffers, *launch.launch.scalars)
    assert run.wait() == STATE.ERT_CMD_STATE_COMPLETED
    buffers[-1].sync(FROM, launch.blocks.size, 0)
    assert view.tobytes() == launch.blocks.tobytes()
    with pytest.raises(TypeError, match="32-bit"):
        card.kernel(*buffers, 2**40)


def test_scalars_are_32_bits_and_signed(card):
    run = pyxrt.run(card.kernel)
    run.set_arg(9, -(2**31))
    for value in (2**31, -(2**31) - 1, 1.5, "1"):
        with pytest.raises(TypeError):
            run.set_arg(9, value)


def test_a_part_of_a_buffer_is_an_argument_and_is_copied_alone(card):
    launch = example()
    whole, view = card.buffer(4 * 4096, 1)
    keys = pyxrt.bo(whole, 8192, 4096)
    assert (keys.size(), keys.address()) == (8192, whole.address() + 4096)
    view[4096 : 4096 + launch.operands[1].size] = launch.operands[1].reshape(-1)
    view[:4096] = 255
    whole.sync(TO, 8192, 4096)
    assert card.blocks(launch, keys) == launch.blocks.tobytes()
    view[:] = 1
    whole.sync(FROM, 8192, 0)
    assert not view[:4096].any()  # was not copied to the card, only here


def test_write_and_read_copy_into_the_hosts_side(card):
    buffer, view = card.buffer(4096)
    buffer.write(b"abcd" * 16, 64)
    assert view[64:128].tobytes() == b"abcd" * 16
    assert buffer.read(8, 62).tobytes() == b"\0\0abcdab"
    with pytest.raises((TypeError, BufferError)):
        buffer.write(7, 0)


def test_a_drive_reads_straight_into_a_p2p_buffer(card, tmp_path):
    launch = example(3000)
    keys, view = card.buffer(3000 * 64 // 4096 * 4096 + 4096, 1, pyxrt.bo.flags.p2p)
    path = tmp_path / "keys"
    path.write_bytes(launch.operands[1].tobytes().ljust(keys.size(), b"\0"))
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        assert os.preadv(file, [keys.map()], 0) == keys.size()
    finally:
        os.close(file)
    assert card.blocks(launch, keys) == launch.blocks.tobytes()
    assert np.array_equal(view[: launch.operands[1].size], launch.operands[1].reshape(-1))


def test_memory_runs_out_and_comes_back(card):
    def take():
        return pyxrt.bo(card.device, 1 << 30, pyxrt.bo.flags.normal, 0)

    taken = [take() for _ in range(3)]
    with pytest.raises((RuntimeError, MemoryError)):
        take()
    taken.clear()
    take()


def test_what_is_not_there_is_an_error(card):
    with pytest.raises(RuntimeError, match="nosuch"):
        pyxrt.kernel(card.device, card.uuid, "nosuch")
    with pytest.raises(RuntimeError):
        pyxrt.xclbin("/no/such/file.xclbin")
