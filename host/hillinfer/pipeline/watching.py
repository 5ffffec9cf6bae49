"""The engine of a head analysis: exact attention, and a look at the softmax of the prompt's last token and each step's.

Only the rows of one query at a time exist, and only over the prompt: never a whole attention matrix.
"""

from __future__ import annotations

import torch

from hillinfer.csd.contract import Stream
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.recording import RecordingEngine
from hillinfer.policies.watching import Watching
from hillinfer.profiling.importance import softmax_rows


class WatchingEngine(RecordingEngine):
    """Of a prompt's queries only the last one is remembered."""

    policy: Watching

    def __init__(self, geometry: Geometry, policy: Watching, *, sequences: int, device: torch.device) -> None:
        if sequences != 1:
            raise SettingError(f"a head analysis watches one sequence at a time, not a batch of {sequences}")
        super().__init__(geometry, policy, sequences=sequences, device=device)
        self._last_query: dict[int, torch.Tensor] = {}
        self._prompt: dict[int, int] = {}

    def admit(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        lse: torch.Tensor,
        scaling: float,
    ) -> None:
        record = self._records[Stream(layer, sequence)]
        self._append(record, keys, values)
        self._last_query[layer], self._prompt[layer] = query[:, :, -1].clone(), record.tokens

    def decode(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        prompt, _ = self._records[Stream(layer, sequence)].rows(0, self._prompt.get(layer, 0))
        last = self._last_query.pop(layer, None)
        now = self.geometry.group_heads(query)[:, :, 0]
        for each in (last, now):
            if each is not None and prompt.shape[1]:
                self.policy.on_rows(layer, softmax_rows(each, prompt, scaling))
        return super().decode(layer, sequence, query, keys, values, scaling)
