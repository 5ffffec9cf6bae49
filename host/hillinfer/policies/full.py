"""The stock cache: every token in fast memory, every token attended. What the others are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hillinfer.policies.base import Policy


@dataclass(frozen=True)
class Full(Policy):
    """transformers' own DynamicCache; nothing of this engine runs."""

    name: ClassVar[str] = "full"
    source: ClassVar[str] = "transformers DynamicCache"
    keeps: ClassVar[str] = "everything, in the memory of the compute device"
