"""The recorded runs that the figures are made of: small, with the package; made again, in the user's cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

from hillinfer.config import cache_home
from hillinfer.simulation.trace import Trace
from hillinfer.simulation.trace_file import load

TOKENS, STEPS = 1920, 128
"""Of the prompt and of what is decoded: the paper's."""

LONG_TOKENS, LONG_STEPS = 7936, 256
"""As many as SmolLM2 was made for: long enough for the compute device to make room, as it does in every long run."""


@dataclass(frozen=True)
class Run:
    """HillInfer on SmolLM2 and real text: alpha of the tokens attended, a hot pool of ``hot`` of the KV."""

    alpha: float
    hot: float
    tokens: int = TOKENS
    steps: int = STEPS

    def __str__(self) -> str:
        return f"{self.tokens:,} + {self.steps} tokens"

    @property
    def file(self) -> str:
        long = "" if self.tokens == TOKENS else f"-{self.tokens}"
        return f"smollm2-alpha{self.alpha * 100:g}-hot{self.hot * 100:g}{long}.npz"

    @property
    def long(self) -> Run:
        """The same on the long context."""
        return replace(self, tokens=LONG_TOKENS, steps=LONG_STEPS)

    def near(self, tokens: int) -> Run:
        """The same, recorded at the context that is nearer to this many tokens, by their ratio."""
        return self.long if tokens * tokens > TOKENS * LONG_TOKENS else replace(self, tokens=TOKENS, steps=STEPS)


PAPER_LOW, PAPER_HIGH = Run(0.1, 0.2), Run(0.2, 0.4)
"""The two ends of the paper's α, with a pool of twice as much."""

POOLS = tuple(Run(0.1, hot) for hot in (0.125, 0.2, 0.4, 0.8))
"""Ever larger pools at one α: what more DRAM brings."""

ALL = tuple(dict.fromkeys((*POOLS, PAPER_HIGH)))
LONG = tuple(run.long for run in ALL)


def folder() -> Path:
    """Where runs that were recorded here are."""
    return cache_home() / "simulation" / "paper"


@cache
def recorded(run: Run) -> Trace:
    """The run as it was recorded here, or else as it comes with the package."""
    own = folder() / run.file
    if own.is_file():
        return load(own)
    with resources.as_file(resources.files(__package__) / "recorded" / run.file) as path:
        return load(path)
