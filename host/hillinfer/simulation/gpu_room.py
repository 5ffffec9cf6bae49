"""What a GPU has left for weights and KV."""

from __future__ import annotations

from hillinfer.simulation.hardware.box import Gpu
from hillinfer.simulation.shape import Shape

PROMPT_CHUNK = 512
"""Tokens of a prompt that go through a layer at once: hillinfer generate's default."""


def gpu_room(gpu: Gpu, shape: Shape) -> float:
    """Bytes: what neither the GPU's programs nor a layer's activations take; none of a GPU that they fill."""
    return max(0.0, gpu.memory - gpu.reserved - shape.activations(PROMPT_CHUNK))
