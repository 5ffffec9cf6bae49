"""How the scoring is split between host and storage device: the host's share, which may change while running."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST = 1 / 32


@dataclass
class Split:
    """``host``: the share of a stream's tokens that the host is to score; None: the tiles of pinned tokens.

    One object for all streams of an engine.
    """

    host: float | None = None

    def lean(self, host: float) -> None:
        """Take over a wanted share, unless it is so near the present one that tiles would only go to and fro.

        A difference that counts: 1/32 of all tokens. The ends, nothing and everything, are always taken over.
        """
        if self.host is None or abs(host - self.host) > _LEAST or host in (0.0, 1.0):
            self.host = host
