"""Copies between DRAM and a compute device with memory of its own, which nobody waits for before it must.

To the device: rows are gathered into pinned memory, copied by a stream of their own beside the computing one, which
waits for an event before it uses them. To DRAM: the computing stream copies into pinned memory, and an event says when
it has. Pinned memory is torch's own cache of it: a block is used again only when the copies that read or wrote it are
over. Where a device has no streams (the CPU, in tests) the same calls are plain copies.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch


class Arriving:
    """A tensor's copy in DRAM, on its way; a tensor that is in DRAM itself has arrived.

    What the device is told to do later does not disturb it.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        if tensor.device.type != "cuda":
            self._copy = tensor.cpu()
            return
        self._copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self._copy.copy_(tensor, non_blocking=True)
        self._event = torch.cuda.current_stream(tensor.device).record_event()

    def wait(self) -> torch.Tensor:
        """The copy, once it is there; all that came before it on the device's stream is done then, too."""
        if self._event is not None:
            self._event.synchronize()
            self._event = None
        return self._copy


def send(
    device: torch.device, rows: torch.Tensor, index: torch.Tensor | None, *beside: torch.Tensor
) -> list[torch.Tensor]:
    """rows[index] of rows [n, …] in DRAM, and the tensors ``beside`` them, on the device: one copy.

    Returns before they are there; whatever the device's current stream does next waits for them.

    index   int64 [k], in DRAM; None: all rows
    """
    if device.type != "cuda":
        return [rows if index is None else rows.index_select(0, index), *beside]
    count = len(rows) if index is None else len(index)
    shapes = [(torch.Size([count, *rows.shape[1:]]), rows.dtype), *((each.shape, each.dtype) for each in beside)]
    pinned = torch.empty(space(shapes), dtype=torch.uint8, pin_memory=True)
    taken, *others = parts_of(pinned, shapes)
    if index is None:
        taken.copy_(rows)
    else:
        torch.index_select(rows, 0, index, out=taken)
    for part, each in zip(others, beside, strict=True):
        part.copy_(each)
    copying, computing = _copying(device), torch.cuda.current_stream(device)
    with torch.cuda.stream(copying):
        arrived = pinned.to(device, non_blocking=True)
        event = copying.record_event()
    computing.wait_event(event)
    arrived.record_stream(computing)  # its memory is the copying stream's, to be used again when both are done
    return parts_of(arrived, shapes)


@functools.cache
def _copying(device: torch.device) -> torch.cuda.Stream:
    """The stream for copies to a device, one in a process."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


Shape = tuple[torch.Size, torch.dtype]
_ALIGNED = 64  # bytes: where each part of a block begins


def space(shapes: Sequence[Shape]) -> int:
    """Bytes of a block for parts of these shapes and types."""
    return sum(-(-shape.numel() * dtype.itemsize // _ALIGNED) * _ALIGNED for shape, dtype in shapes)


def parts_of(block: torch.Tensor, shapes: Sequence[Shape]) -> list[torch.Tensor]:
    """Views of a block uint8 [space(shapes)], one behind the other, of these shapes and types."""
    parts, start = [], 0
    for shape, dtype in shapes:
        stop = start + shape.numel() * dtype.itemsize
        parts.append(block[start:stop].view(dtype).view(shape))
        start += space([(shape, dtype)])
    return parts
