"""How long a prompt takes: products of all its tokens with the weights, attention, and writing what is to be kept."""

from __future__ import annotations

from hillinfer.errors import SettingError
from hillinfer.simulation.gpu_room import gpu_room
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.shape import Shape


def prefill_seconds(
    hardware: Hardware, shape: Shape, *, tokens: int, sequences: int, on_device: float = 0, to_dram: float = 0,
    to_drive: float = 0,
) -> float:  # fmt: skip
    """Seconds until the first token of a batch of prompts on a GPU at its full rate, the slowest of what runs at once.

    on_device          bytes of KV that stay on the GPU, which weights give way to
    to_dram, to_drive  bytes of KV that leave it meanwhile

    A lower bound: no kernel reaches the datasheet's rate. SettingError for a box without a GPU, of which the model
    knows no rate for many tokens at once.
    """
    gpu, pcie = hardware.gpu, hardware.pcie
    if gpu is None or pcie is None:
        raise SettingError(f"the box {hardware.name} has no GPU: how long a prompt takes there is not modelled")
    layers = shape.layers * shape.layer_weights
    products = 2 * (layers * tokens + shape.head_weights) / shape.weight_bytes * sequences  # one token needs the head
    attention = 2 * shape.layers * shape.query_heads * shape.head_dim * tokens * tokens * sequences  # causal: half
    weights = shape.weights + shape.head_weights
    away = max(0.0, weights + on_device - gpu_room(gpu, shape))
    _, drive, count = hardware.cold_pool()
    return max(
        (products + attention) / gpu.flops,
        shape.weights / gpu.bandwidth,
        (away + to_dram + to_drive) / pcie.bandwidth,
        to_drive / drive.write / count,
    )
