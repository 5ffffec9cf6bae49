"""How the scoring is split between host and storage device: the host's share, which may change while running."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST = 1 / 16
"""Of the smaller side's tokens, as good as: less is not worth moving a tile for."""


@dataclass
class Split:
    """``host``: the share of a stream's tokens that the host is to score; None: the tiles of pinned tokens.

    One object for all streams of an engine.
    """

    host: float | None = None

    def lean(self, host: float) -> None:
        """Take over a wanted share, unless it is so near the present one that tiles would only go to and fro.

        Half and half, a difference counts from 1/64 of all tokens on, and from less where one side has few. The ends,
        nothing and everything, are always taken over.
        """
        if self.host is None or abs(host - self.host) > _LEAST * host * (1 - host) or host in (0.0, 1.0):
            self.host = host
