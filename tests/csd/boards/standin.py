"""A stand-in for pyxrt, for what no emulated card shows: other versions of the module, cards in use, failed launches.

The emulation's XRT gives a compute unit to everybody, and knows two states of a launch: under way and completed.
"""

from __future__ import annotations

import enum
from types import SimpleNamespace

State = enum.Enum(
    "State",
    ["NEW", "QUEUED", "RUNNING", "COMPLETED", "ERROR", "ABORT", "SUBMITTED", "TIMEOUT", "NORESPONSE", "SKERROR"],
)


class Run:
    """Goes through ``states`` and stays in the last one."""

    states: tuple[State, ...] = (State.NEW, State.RUNNING, State.COMPLETED)

    def __init__(self, kernel):
        self.kernel, self.arguments, self.left = kernel, {}, iter(())
        self.last = State.NEW

    def set_arg(self, index, argument):
        self.arguments[index] = argument

    def start(self):
        self.left = iter(self.states)

    def state(self):
        self.last = next(self.left, self.last)
        return self.last


class AbortingRun(Run):
    states = (State.RUNNING,)

    def abort(self):
        self.last = State.ABORT


class Buffer:
    def __init__(self, _, size, *rest):
        self.calls = [size, *rest]
        self._memory = bytearray(size)

    def size(self):
        return len(self._memory)

    def map(self):
        return memoryview(self._memory)

    def sync(self, _, size, offset):
        assert 0 <= offset <= offset + size <= len(self._memory)


Buffer.flags = SimpleNamespace(normal="normal", p2p="p2p")


class Kernel:
    cu_access_mode = SimpleNamespace(exclusive="exclusive", shared="shared")

    def __init__(self, *given):
        self.given = given

    def group_id(self, argument):
        return argument


class Device:
    def __init__(self, which):
        self.which, self.loaded = which, []

    def load_xclbin(self, path):
        self.loaded.append(("load_xclbin", path))
        return "uuid"

    def register_xclbin(self, image):
        self.loaded.append(("register_xclbin", image))
        return "uuid"

    def get_info(self, _):
        raise RuntimeError("no such key")


def pyxrt(run=Run, **changes):
    """The module as of 2.13, with what ``changes`` name added or put in place."""
    direction = SimpleNamespace(XCL_BO_SYNC_BO_TO_DEVICE="to", XCL_BO_SYNC_BO_FROM_DEVICE="from")
    module = {
        "xclBOSyncDirection": direction,
        "xrt_info_device": SimpleNamespace(name="name", interface_uuid="interface_uuid"),
        "device": Device,
        "kernel": Kernel,
        "bo": Buffer,
        "run": run,
        "xclbin": lambda path: ("xclbin", path),
    }
    return SimpleNamespace(**(module | changes))
