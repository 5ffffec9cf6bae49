"""Not a method of its own: full attention, watched. What a head analysis runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.policies.base import Policy


def _unheard(layer: int, rows: torch.Tensor) -> None:
    pass


@dataclass(frozen=True)
class Watching(Policy):
    """on_rows   gets (layer, rows float32 [H, G, N]): the softmax of one query over the N tokens of the prompt. First
    that of the prompt's last token, when the first token is decoded, then one per decoded token.
    """

    name: ClassVar[str] = "watching"
    source: ClassVar[str] = "this project"
    keeps: ClassVar[str] = "everything, in the memory of the compute device"

    on_rows: Callable[[int, torch.Tensor], None] = _unheard
