"""A card as pyxrt gives it: opened, with the kernel, and launches on it."""

from __future__ import annotations

import os

import numpy as np
import pyxrt

from tests.hw_emu.cards import Example

TO = pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE
FROM = pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE
STATE = pyxrt.ert_cmd_state


class Card:
    """Opening one takes a second, so tests share it."""

    def __init__(self, index: int = 0) -> None:
        self.device = pyxrt.device(index)
        self.uuid = self.device.load_xclbin(os.environ["HILLINFER_XCLBIN"])
        self.kernel = pyxrt.kernel(self.device, self.uuid, "qk_score", pyxrt.kernel.cu_access_mode.exclusive)

    def buffer(self, nbytes: int, argument: int = 0, flags=pyxrt.bo.flags.normal):
        """Zeros on both sides, and the host's view of them."""
        buffer = pyxrt.bo(self.device, nbytes, flags, self.kernel.group_id(argument))
        view = np.frombuffer(buffer.map(), np.uint8)
        view[:] = 0
        if flags == pyxrt.bo.flags.normal:
            buffer.sync(TO, nbytes, 0)
        return buffer, view

    def prepare(self, launch: Example, keys=None):
        """A run with everything set, its buffers, and the view of its blocks."""
        buffers = []
        for argument, operand in enumerate(launch.operands):
            buffer, view = self.buffer(operand.size, argument)
            view[:] = operand.reshape(-1)
            buffer.sync(TO, operand.size, 0)
            buffers.append(buffer)
        if keys is not None:
            buffers[1] = keys
        blocks, view = self.buffer(launch.blocks.size, 3)
        run = pyxrt.run(self.kernel)
        for argument, value in enumerate((*buffers, blocks, *launch.launch.scalars)):
            run.set_arg(argument, value)
        return run, [*buffers, blocks], view

    def blocks(self, launch: Example, keys=None) -> bytes:
        """Run it; what the card wrote."""
        run, buffers, view = self.prepare(launch, keys)
        run.start()
        assert run.wait(10_000) == STATE.ERT_CMD_STATE_COMPLETED
        buffers[-1].sync(FROM, launch.blocks.size, 0)
        return view.tobytes()
