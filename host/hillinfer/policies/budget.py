"""How much of the context a policy may keep in fast memory, or attend to: one meaning for every policy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hillinfer.config import parse_size
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry

_PERCENT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*%\s*")
_COUNT = re.compile(r"\s*[0-9]+\s*")
_SHARE = re.compile(r"\s*[0-9]*\.[0-9]+\s*")
_ROUNDING = 1e-9  # 0.29 · 100 is a hair below 29 in binary, and means 29


@dataclass(frozen=True)
class TokenBudget:
    """Tokens per KV head and layer, on average: a share of the cached ones, a number, or what fits into some bytes.

    ratio    of the cached tokens, in (0, 1]; grows with the context
    tokens   whatever the context's length, at least 1
    nbytes   of keys and values of the whole cache: all layers, heads and sequences together

    Exactly one of the three is set. ``parse`` reads what people write.
    """

    ratio: float | None = None
    tokens: int | None = None
    nbytes: int | None = None

    def __post_init__(self) -> None:
        if sum(form is not None for form in (self.ratio, self.tokens, self.nbytes)) != 1:
            raise SettingError("a budget is one of a ratio, a number of tokens, or bytes")
        if self.ratio is not None and not 0 < self.ratio <= 1:
            raise SettingError(f"a budget of {self.ratio:.4%} is out of range: it is above 0% and at most 100%")
        if self.tokens is not None and self.tokens < 1:
            raise SettingError(f"a budget of {self.tokens} tokens is too small: it is at least 1")
        if self.nbytes is not None and self.nbytes < 1:
            raise SettingError(f"a budget of {self.nbytes} bytes is too small: it is at least one token of every layer")

    @classmethod
    def parse(cls, text: TokenBudget | str | int | float) -> TokenBudget:
        """Read ``"20%"`` or ``0.2`` (of the cached tokens), ``"512"`` or ``512`` (tokens), ``"64MiB"`` (bytes).

        A number without a unit is tokens; with a decimal point it is a ratio. Raises SettingError.
        """
        if isinstance(text, TokenBudget):
            return text
        if isinstance(text, int) and not isinstance(text, bool):
            return cls(tokens=text)
        if isinstance(text, float):
            return cls(ratio=text)
        written = str(text)
        if match := _PERCENT.fullmatch(written):
            return cls(ratio=float(match.group(1)) / 100)
        if _COUNT.fullmatch(written):
            return cls(tokens=int(written))
        if _SHARE.fullmatch(written):
            return cls(ratio=float(written))
        nbytes = parse_size(written)
        if nbytes is None:
            raise SettingError(
                f"cannot read {written!r} as a budget: write a ratio (20%), a number of tokens (512) or bytes (64MiB)"
            )
        return cls(nbytes=nbytes)

    def resolve(self, cached: int) -> int:
        """Tokens allowed of ``cached`` ones, rounded down, at most all of them; not for bytes (see ``fitted``)."""
        if self.tokens is not None:
            return min(self.tokens, cached)
        if self.ratio is None:
            raise SettingError(f"a budget of {self} has no number of tokens before the model is known: fit it first")
        return int(self.ratio * cached + _ROUNDING)

    def fitted(self, geometry: Geometry, sequences: int) -> TokenBudget:
        """The same budget for one cache: bytes become the number of tokens whose rows they hold."""
        if self.nbytes is None:
            return self
        tokens = self.nbytes // geometry.kv_bytes(1, sequences)
        if tokens < 1:
            raise SettingError(
                f"a budget of {self} holds no token: one takes {geometry.kv_bytes(1, sequences)} bytes "
                f"({geometry.layers} layers, {sequences} sequences)"
            )
        return TokenBudget(tokens=tokens)

    def __str__(self) -> str:
        if self.ratio is not None:
            return f"{self.ratio * 100:.6g}%"
        return f"{self.tokens} tokens" if self.tokens is not None else f"{self.nbytes} bytes"
