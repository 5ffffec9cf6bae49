"""The kernel's C++ as a shared library in this process: the C simulation, and the reference of every other device.

It is bit-exact with the RTL and with Vitis's build, as all three come from the same source (docs/kernel.md).
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hillinfer.csd import libraries
from hillinfer.csd.abi import Launch, aligned, numbers
from hillinfer.errors import DeviceError

Beats = npt.NDArray[np.uint8]

LIBRARY = "libqk_score.so"
_FAST_DEPTH = 1024  # elements a stream holds at least, where only the results matter


def find_library() -> Path:
    """Where the library is: $HILLINFER_NATIVE, inside the package, or where `make csim` builds it."""
    return libraries.find(LIBRARY, "the native kernel library", "HILLINFER_NATIVE", "native", "make csim")


class Library:
    """One built library. Launches may come from several threads at once."""

    def __init__(self, path: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(path.resolve()))
            self._library.qk_abi_version.restype = ctypes.c_int
            version = self._library.qk_abi_version()
        except (OSError, AttributeError) as error:
            raise DeviceError(f"{path} is not the native kernel library: build it again ({error})") from error
        if version != numbers.ABI_VERSION:
            raise DeviceError(
                f"{path} speaks version {version} of the kernel's ABI, this package version {numbers.ABI_VERSION}: "
                f"build it again"
            )
        self._library.qk_score.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int32] * 6
        self._library.qk_score.restype = None
        self._library.qk_least_depth.argtypes = [ctypes.c_uint]
        self._library.qk_least_depth.restype = None
        self._library.qk_fault.restype = ctypes.c_char_p

    def run(
        self, query: int, keys: int, exps: int, blocks: int, scalars: tuple[int, ...], *, exact_depth: bool = False
    ) -> None:
        """One launch with nothing checked: addresses, and the six scalars in the kernel's order.

        exact_depth makes streams as shallow as in hardware, which is slower and finds deadlocks. DeviceError: one was
        found.
        """
        self._library.qk_least_depth(0 if exact_depth else _FAST_DEPTH)
        self._library.qk_score(query, keys, exps, blocks, *scalars)
        fault = self._library.qk_fault()
        if fault:
            raise DeviceError(f"the native kernel did not end: {fault.decode()}")

    def score(
        self, query: Beats, keys: Beats, exps: Beats, launch: Launch, *, exact_depth: bool = False
    ) -> npt.NDArray[np.uint32]:
        """The Score Block slots of one launch, uint32 [slots, 1040]; query, keys and exps are uint8 [beats, 64].

        DeviceError for an array that is misaligned, not contiguous or shorter than the launch reads.
        """
        for name, array, beats in (
            ("query", query, launch.query_beats),
            ("keys", keys, launch.key_beats),
            ("exps", exps, launch.exponent_beats),
        ):
            _check(name, array, beats)
        blocks = aligned(launch.block_beats)
        self.run(
            query.ctypes.data,
            keys.ctypes.data,
            exps.ctypes.data,
            blocks.ctypes.data,
            launch.scalars,
            exact_depth=exact_depth,
        )
        return blocks.view(np.uint32).reshape(launch.slots, -1)


@functools.cache
def load() -> Library:
    """The library that `find_library` finds, loaded once."""
    return Library(find_library())


def score(
    query: Beats,
    keys: Beats,
    exps: Beats,
    n_tokens: int,
    first_token: int,
    shape: int,
    format: int,
    min_score: int,
    tag: int,
) -> npt.NDArray[np.uint32]:
    """One launch as the kernel's arguments have it; see Library.score and Launch."""
    return load().score(query, keys, exps, Launch(n_tokens, first_token, shape, format, min_score, tag))


def _check(name: str, array: Beats, beats: int) -> None:
    if array.dtype != np.uint8 or not array.flags.c_contiguous:
        raise DeviceError(f"{name} must be one contiguous stretch of bytes (uint8)")
    if array.size and array.ctypes.data % numbers.BEAT_BYTES:
        raise DeviceError(
            f"{name} starts at {array.ctypes.data:#x}, not at a multiple of 64: use hillinfer.csd.abi.aligned"
        )
    if array.size < beats * numbers.BEAT_BYTES:
        raise DeviceError(f"{name} has {array.size} bytes, the launch reads {beats * numbers.BEAT_BYTES}")
