"""The xrt board's parts: its thread and deadlines, versions of pyxrt, states of launches, names of cards and images."""

from __future__ import annotations

import gc
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hillinfer.csd.boards.xrt import XrtBoard, opening
from hillinfer.csd.boards.xrt.binding import Binding, load_binding
from hillinfer.csd.boards.xrt.thread import CardThread
from hillinfer.csd.kernel.board import Part, Port
from hillinfer.errors import DeviceError, DeviceFull, SettingError
from tests.csd.boards.standin import AbortingRun, Run, State, pyxrt

# ---- the thread


@pytest.fixture
def thread():
    card = CardThread("xrt:0", 60.0)
    yield card
    card.stop()


@pytest.fixture(autouse=True)
def ends_as_ever(monkeypatch):
    """This process goes on after its card was lost."""
    monkeypatch.setattr("hillinfer.csd.boards.xrt.thread._end_without_xrt", lambda: None)


def test_work_is_done_in_order_on_one_thread(thread):
    done = []
    jobs = [thread.post("work", lambda i=i: done.append((i, threading.get_ident()))) for i in range(50)]
    assert thread.call("the last", lambda: 7) == 7
    assert [i for i, _ in done] == list(range(50))
    assert {ident for _, ident in done} == {thread.call("asking", threading.get_ident)}
    assert all(job.wait(0) for job in jobs)


def test_failures_are_in_the_cards_own_words(thread):
    def fail(error):
        raise error

    for error, kind, message in (
        (RuntimeError("failed to load\n xclbin"), DeviceError, "xrt:0: loading failed: failed to load xclbin"),
        (MemoryError("std::bad_alloc"), DeviceFull, "xrt:0: loading failed: std::bad_alloc"),
        (KeyError(), DeviceError, "xrt:0: loading failed: KeyError"),
        (SettingError("as it was"), SettingError, "^as it was$"),
    ):
        with pytest.raises(kind, match=message):
            thread.call("loading", lambda error=error: fail(error))
    assert thread.call("loading", lambda: 1) == 1


def test_a_call_that_does_not_return_is_an_error_in_time_and_for_ever():
    thread, hang = CardThread("xrt:0", 600.0), threading.Event()
    start = time.monotonic()
    with pytest.raises(DeviceError, match=r"xrt:0 has not answered for 0.2 s \(a copy\): .*reset the card"):
        thread.call("a copy", lambda: hang.wait(), 0.2)
    assert time.monotonic() - start >= 0.2
    for call in (thread.post, thread.call):
        with pytest.raises(DeviceError, match="has not answered"):
            call("more", lambda: None)
    thread.stop()
    assert time.monotonic() - start < thread.seconds  # nobody waited for the work, which hangs still
    hang.set()


def test_garbage_that_is_collected_on_the_thread_may_call_it(thread):
    def work():
        return thread.call("within", lambda: 3)

    assert thread.call("around", work) == 3


# ---- versions


def test_without_pyxrt_it_says_where_it_comes_from(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyxrt", None)
    with pytest.raises(DeviceError, match=r"cannot be imported .*setup.sh.*make pyxrt.*smartssd.md"):
        load_binding()


def test_versions_before_and_after_exclusive_contexts():
    image = Path("/a/qk.xclbin")
    old = Binding(pyxrt())
    device = old.open("0000:03:00.1")
    kernel, _ = old.load(device, image, "qk_score")
    assert device.loaded == [("load_xclbin", str(image))]
    assert kernel.given == (device, "uuid", "qk_score", "exclusive")

    shared_only = Binding(pyxrt(hw_context=lambda *_: None))
    device = shared_only.open(0)
    assert shared_only.load(device, image, "qk_score")[0].given[-1] == "exclusive"

    context = SimpleNamespace(access_mode=SimpleNamespace(exclusive="only me"))

    class Context:
        access_mode = context.access_mode

        def __init__(self, *given):
            self.given = given

    new = Binding(pyxrt(hw_context=Context))
    device = new.open(0)
    kernel, held = new.load(device, image, "qk_score")
    assert device.loaded == [("register_xclbin", ("xclbin", str(image)))]
    assert held.given == (device, "uuid", "only me")
    assert kernel.given == (held, "qk_score")


# ---- launches


def board_on(module, launch_seconds=60.0):
    binding, thread = Binding(module), CardThread("xrt:0", 60.0)
    device = binding.open(0)
    kernel, held = binding.load(device, Path("x"), "qk_score")
    board = XrtBoard("xrt:0", thread, binding, device, kernel, held, (0, 1, 2, 3), 1 << 30)
    board._card.launches.seconds = launch_seconds  # theirs alone: what a busy machine delays is no lost card
    return board


def launch(board):
    parts = [Part(board.allocate(4096, port)) for port in Port]
    return board.start(*parts, (1, 2, 3, 4, 5, 6))


def with_states(*states):
    return type("Stated", (Run,), {"states": states})


def test_a_launch_sets_every_argument_by_itself():
    board = board_on(pyxrt())
    launch(board).wait()
    (run,) = board._card.launches._idle
    assert [run.arguments[i] for i in range(4, 10)] == [1, 2, 3, 4, 5, 6]
    assert [run.arguments[i].calls[-1] for i in range(4)] == [0, 1, 2, 3]
    board.close()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State.ERROR, "ERT_CMD_STATE_ERROR: the card reports an error"),
        (State.ABORT, "ERT_CMD_STATE_ABORT"),
        (State.TIMEOUT, "ERT_CMD_STATE_TIMEOUT"),
        (State.SKERROR, "ERT_CMD_STATE_SKERROR"),
    ],
)
def test_every_last_state_but_one_is_an_error(state, message):
    board = board_on(pyxrt(with_states(State.SUBMITTED, State.RUNNING, state)))
    running = launch(board)
    for _ in range(2):
        with pytest.raises(DeviceError, match=f"xrt:0 failed a launch: {message}"):
            running.wait()
    board._card.launches._idle[0].states = (State.COMPLETED,)
    with pytest.raises(DeviceError, match=message):
        launch(board).wait()
    board.close()


def test_a_card_that_does_not_respond_is_lost():
    board = board_on(pyxrt(with_states(State.NORESPONSE)))
    first, second = launch(board), launch(board)
    for running in (first, second, first):
        with pytest.raises(DeviceError, match=r"could not be reset.*reset the card"):
            running.wait()
    with pytest.raises(DeviceError, match="could not be reset"):
        board.allocate(64, Port.KEYS)
    board.close()


def test_where_pyxrt_can_abort_a_late_launch_the_card_goes_on():
    board = board_on(pyxrt(AbortingRun), launch_seconds=0.2)
    with pytest.raises(DeviceError, match="failed a launch: ERT_CMD_STATE_ABORT"):
        launch(board).wait()
    with pytest.raises(DeviceError, match="ERT_CMD_STATE_ABORT"):
        launch(board).wait()
    board.close()


def test_a_late_launch_that_cannot_be_aborted_loses_the_card(monkeypatch):
    monkeypatch.setattr("hillinfer.csd.boards.xrt.launches.GRACE", 0.1)
    board = board_on(pyxrt(with_states(State.QUEUED)), launch_seconds=0.2)
    running = launch(board)
    with pytest.raises(DeviceError, match=r"has not ended a launch within 0.2 s \(queued; this XRT cannot abort it\)"):
        running.wait()
    board.close()
    with pytest.raises(DeviceError, match="closed"):
        launch(board)


def test_sub_buffers_are_made_once_and_not_kept_without_end(monkeypatch):
    monkeypatch.setattr("hillinfer.csd.boards.xrt.board._PARTS", 4)
    board = board_on(pyxrt())
    buffers = [board.allocate(1 << 16, port) for port in Port]
    for offset in (4096, 8192, 4096, 12288, 16384, 20480, 4096):
        board.start(*(Part(buffer, offset) for buffer in buffers), (0, 0, 0, 0, 0, 0)).wait()
    memory = board._card.memories[buffers[0].key]
    assert list(memory._parts) == [12288, 16384, 20480, 4096]
    assert memory._parts[4096].calls == [(1 << 16) - 4096, 4096]
    board.close()


def test_without_p2p_there_are_no_p2p_buffers():
    class NoP2p(pyxrt().bo):
        def __init__(self, first, size, *rest):
            if "p2p" in rest:
                raise RuntimeError("P2P is not enabled")
            super().__init__(first, size, *rest)

    board = board_on(pyxrt(bo=NoP2p))
    assert not board.p2p
    with pytest.raises(DeviceError, match="xrt:0 has no p2p buffers: xbutil configure"):
        board.allocate(4096, Port.KEYS, p2p=True)
    board.close()


def test_a_board_that_is_dropped_closes():
    board = board_on(pyxrt())
    running, card = launch(board), board._card
    del board, running
    gc.collect()
    assert card.closed
    assert not card.memories


# ---- opening


def test_a_card_that_is_in_use_says_so(monkeypatch, tmp_path):
    from hillinfer.csd.xclbin.checks import POINTERS, SCALARS
    from scripts.hw_emu.xclbin import write_xclbin

    class Busy(pyxrt().kernel):
        def __init__(self, *_):
            raise RuntimeError("failed to open ip context: Device or resource busy")

    image = tmp_path / "image.xclbin"
    names = {name: 16 + 16 * i for i, name in enumerate([*POINTERS, *SCALARS])}
    write_xclbin(image, names)
    monkeypatch.setenv("XCL_EMULATION_MODE", "hw_emu")
    monkeypatch.setitem(sys.modules, "pyxrt", pyxrt(kernel=Busy))
    with pytest.raises(DeviceError, match=r"resource busy: another program uses xrt:3; end it, or use another card"):
        opening.open_board("xrt:3", image)
    monkeypatch.setenv("HILLINFER_DEVICE_SECONDS", "soon")
    with pytest.raises(SettingError, match="HILLINFER_DEVICE_SECONDS is 'soon': a number of seconds"):
        opening.open_board("xrt:3", image)
