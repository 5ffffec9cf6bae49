"""The device process: answers the shim's calls with a card's memory and one compute unit of ``qk_score``."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from . import kernels, messages
from .compute_unit import ComputeUnit
from .errors import CardError, EmulationError
from .faults import Faults
from .memory import Memory
from .messages import Api
from .wire import Wire


class Device:
    """One card. ``base`` is where its compute unit's registers lie; ``broken`` is told what a card would hang over."""

    def __init__(
        self,
        run: kernels.Run,
        registers: Mapping[str, int],
        base: int,
        faults: Faults,
        broken: Callable[[Exception], None],
    ) -> None:
        self._run, self._base, self._faults, self._broken = run, base, faults, broken
        self._memory = Memory()
        self._launches = 0
        self._hung = False
        self._unit = ComputeUnit(registers, self._launch, broken)

    def serve(self, wire: Wire, closing: Callable[[], None]) -> None:
        """Answer calls until the host closes the device or is gone. ``closing`` is called before the last answer."""
        try:
            while (received := wire.receive()) is not None:
                api, payload = received
                if api is Api.CLOSE:
                    closing()
                wire.answer(self.answer(api, messages.call(api, payload)).SerializeToString())
                if api is Api.CLOSE:
                    break
        except (CardError, EmulationError) as error:
            self._broken(error)
        self.close()

    def answer(self, api: Api, call: Any) -> Any:
        """Do what a call asks for. CardError when a card would fall over."""
        if api is Api.ALLOCATE:
            return messages.answer(api, ack=True, filename=self._memory.allocate(call.address, call.size, p2p=call.p2p))
        if api is Api.FREE:
            self._memory.free(call.address)
            self._unit.release()
        elif api is Api.TO_DEVICE:
            self._memory.write(call.address + call.offset, call.data[: call.size])
            return messages.answer(api, size=call.size)
        elif api is Api.FROM_DEVICE:
            data = self._memory.read(call.address + call.offset, call.size)
            return messages.answer(api, size=call.size, data=data)
        elif api is Api.WRITE_REGISTERS:
            self._unit.write(call.address - self._base, call.data)
        elif api is Api.READ_REGISTERS:
            word = struct.pack("<I", self._unit.read(call.address - self._base))
            return messages.answer(api, valid=True, data=word.ljust(call.size, b"\0"))
        elif api is Api.TIMESTAMP:
            return messages.answer(api, nanoseconds=time.monotonic_ns())
        return messages.acknowledge(api)

    def close(self) -> None:
        self._unit.close()
        self._memory.close()

    def _launch(self, pointers: tuple[int, int, int, int], scalars: tuple[int, ...]) -> bool:
        faults, before = self._faults, self._launches
        self._launches += 1
        if faults.die_after == before:
            os._exit(1)
        if faults.hang_after == before:
            self._hung = True
            return False
        if faults.slow:
            time.sleep(faults.slow / 1000)
        if not self._hung and (faults.skip_after is None or before < faults.skip_after):
            kernels.launch(self._run, self._memory, pointers, scalars)
        return True
