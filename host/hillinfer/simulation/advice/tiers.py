"""What of a model's KV cache would lie where: the engine's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from hillinfer.simulation.gpu_room import gpu_room
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.shape import Shape


@dataclass(frozen=True)
class Tiers:
    """Bytes.

    kv            the whole KV cache; what HillInfer's log on the drive holds
    scoring_copy  INT8 keys that are scanned
    weights       of the model; weights_on_gpu: of them, what the GPU has room for
    dram_free     memory of the host that weights leave
    """

    kv: int
    scoring_copy: int
    weights: float
    weights_on_gpu: float
    dram_free: float

    @property
    def hot_share(self) -> float:
        """Most of the KV that DRAM has room for, as a share of it; none where weights leave no room."""
        return min(1.0, max(0.0, self.dram_free) / self.kv)


def tiers(hardware: Hardware, shape: Shape, context: int, batch: int) -> Tiers:
    """For ``batch`` sequences of ``context`` tokens."""
    import torch

    from hillinfer.kv.geometry import Geometry

    dtype = torch.float32 if shape.kv_bytes == 4 else torch.float16
    geometry = Geometry(shape.layers, shape.kv_heads, shape.query_heads // shape.kv_heads, shape.head_dim, dtype)
    weights = shape.weights + shape.head_weights
    on_gpu = 0.0 if hardware.gpu is None else min(weights, gpu_room(hardware.gpu, shape))
    return Tiers(
        kv=geometry.kv_bytes(context, batch),
        scoring_copy=shape.layers * batch * context * geometry.score_key_bytes,
        weights=weights,
        weights_on_gpu=on_gpu,
        dram_free=hardware.dram.capacity - (weights - on_gpu),
    )
