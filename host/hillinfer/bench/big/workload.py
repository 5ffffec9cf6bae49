"""What every method decodes: streams of one shape, their prompts, and steps whose attention is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.bench.arranging import Arranged, Arrangement, Shape
from hillinfer.csd.contract import Stream
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.choosing import WINDOW
from hillinfer.pipeline.contract import Engine

_CHUNK = 2048
Mass = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Steps:
    """The decode steps of one stream.

    query [steps, H·G, 1, d], keys and values [steps, H, 1, d]: of one new token each
    attention   float16 [H, steps, n + steps]: softmax weights over all cached tokens and the new one, mean over a group
    """

    query: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    attention: npt.NDArray[np.float16]

    def captured(self, step: int, cached: int, sets: list[Positions]) -> float:
        """Share of the attention that falls on the tokens of ``sets`` and on the new one; mean over heads."""
        weights = self.attention[:, step]
        own = weights[:, cached].astype(np.float32)
        each = [
            weights[head, sets[head if len(sets) > 1 else 0]].astype(np.float32).sum() + own[head]
            for head in range(len(weights))
        ]
        return float(np.mean(each))


class Workload:
    """Prompts of ``context`` tokens in every stream, and ``steps`` tokens that follow.

    layers      measured; sequences: the batch size
    """

    def __init__(
        self, arrangement: Arrangement, shape: Shape, *, layers: int, sequences: int, context: int, steps: int
    ) -> None:
        self.shape, self.layers, self.sequences = shape, layers, sequences
        self.context, self.step_count = context, steps
        self.geometry: Geometry = shape.geometry(layers)
        self.scaling = shape.head_dim**-0.5
        self._arrangement = arrangement
        self.steps: dict[Stream, Steps] = {}

    @property
    def streams(self) -> list[Stream]:
        return [Stream(layer, sequence) for layer in range(self.layers) for sequence in range(self.sequences)]

    @property
    def tokens(self) -> int:
        """Of a sequence, in the end."""
        return self.context + self.step_count

    def prompt(self, stream: Stream) -> Arranged:
        """A stream's prompt, arranged anew at every call; its steps are kept beside."""
        whole = self._arrangement.stream(stream.layer * self.sequences + stream.sequence)
        start = whole.keys.shape[1] - self.tokens
        middle = start + self.context
        if stream not in self.steps:
            self.steps[stream] = Steps(
                whole.query[:, :, middle:].flatten(0, 1).transpose(0, 1)[:, :, None].contiguous(),
                whole.keys[:, middle:].transpose(0, 1)[:, :, None].contiguous(),
                whole.values[:, middle:].transpose(0, 1)[:, :, None].contiguous(),
                self._attention(whole.query[:, :, middle:], whole.keys[:, start:]),
            )
        part = slice(start, middle)
        return Arranged(whole.query[:, :, part], whole.keys[:, part], whole.values[:, part])

    def _attention(self, query: torch.Tensor, keys: torch.Tensor) -> npt.NDArray[np.float16]:
        """Exact softmax weights of the last queries [H, G, steps, d], causal; head by head, they are large."""
        weights = []
        for one_query, one_keys in zip(query, keys, strict=True):
            weights.append(self._softmax(one_query, one_keys)[0].mean(0).half())
        return torch.stack(weights).numpy()

    def _softmax(self, query: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the last queries [G, T, d] of one head over its keys [n, d]: weights [G, T, n], log-sum-exp [G, T]."""
        logits = torch.matmul(query.float() * self.scaling, keys.float().T)
        length, tokens = query.shape[1], keys.shape[0]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        logits[:, :, tokens - length :].masked_fill_(later, -torch.inf)
        lse = logits.logsumexp(-1)
        return (logits - lse[..., None]).exp_(), lse

    def chunks(self, prompt: Arranged) -> Iterator[tuple[Arranged, torch.Tensor]]:
        """The prompt in parts, with the log-sum-exp float32 [H, G, T] of their queries.

        That of all but the prompt's last queries is left at zero: no policy looks at it.
        """
        last = prompt.query[:, :, -WINDOW:]
        lse = torch.stack([self._softmax(q, k)[1] for q, k in zip(last, prompt.keys, strict=True)])
        for first in range(0, self.context, _CHUNK):
            part = slice(first, min(first + _CHUNK, self.context))
            of_part = torch.zeros(*prompt.query.shape[:2], part.stop - first)
            if part.stop == self.context:
                known = min(WINDOW, part.stop - first)
                of_part[:, :, -known:] = lse[:, :, -known:]
            yield Arranged(prompt.query[:, :, part], prompt.keys[:, part], prompt.values[:, part]), of_part

    def fill(self, engines: list[Engine], on_progress: Callable[[str], None]) -> None:
        """Give all prompts to all engines."""
        for number, stream in enumerate(self.streams, 1):
            on_progress(f"arranging stream {number} of {len(self.streams)}")
            prompt = self.prompt(stream)
            chunks = list(self.chunks(prompt))
            for index, engine in enumerate(engines, 1):
                on_progress(f"stream {number} of {len(self.streams)} into cache {index} of {len(engines)}")
                for part, lse in chunks:
                    engine.admit(*stream, part.query, part.keys, part.values, lse, self.scaling)
