"""Which scoring copy: the one that was asked for, or the finest that fits its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.kv.copies import KINDS, CopyKind
from hillinfer.kv.geometry import Geometry

STREAM = "stream"
_SHORT = 1024  # tokens: a shorter context is judged as if it had so many


@dataclass(frozen=True)
class CopyChoice:
    """kind       how scoring keys are made
    streamed   there is no copy of them: the device reads the keys themselves for every query, and casts them
    budget     bytes for the copies of all layers and sequences; None: what they need
    """

    kind: CopyKind
    streamed: bool = False
    budget: Budget | None = None

    @classmethod
    def int8(cls) -> CopyChoice:
        """For policies that have nothing scored, or score on their own."""
        return cls(KINDS["int8"])

    @classmethod
    def of(cls, settings: StoreSettings, geometry: Geometry, sequences: int, tokens: int) -> CopyChoice:
        """The choice of the settings, for ``tokens`` tokens in each of so many sequences.

        MemoryBudgetError where what was asked for does not fit into its budget.
        """
        asked, budget = settings.scoring_copy, settings.scoring_bytes
        if asked == STREAM:
            return cls(KINDS["int8"], True, budget)
        for name in _candidates(asked, limited=budget is not None):
            choice = cls(KINDS[name], False, budget)
            if not choice._lack(geometry, sequences, tokens):
                return choice
        if asked == "auto":
            return cls(KINDS["int8"], True, budget)
        choice.check(geometry, sequences, tokens)
        raise AssertionError("a copy that does not fit is an error")

    @property
    def name(self) -> str:
        """What settings call it."""
        return STREAM if self.streamed else self.kind.name

    def shape(self, geometry: Geometry) -> Geometry:
        """The geometry with this copy's keys."""
        dim = self.kind.key_dim(geometry.head_dim) if self.kind.fitted else None
        return replace(geometry, key_format=self.kind.key_format, copy_dim=dim)

    def device(self, settings: StoreSettings) -> StoreSettings:
        """The settings as the device has to see them; SettingError where they contradict the choice."""
        if self.streamed and settings.device_keys == "resident":
            raise SettingError(
                "device_keys 'resident' keeps a scoring copy, and scoring_copy 'stream' has none: leave one of them out"
            )
        return replace(settings, device_keys="stream") if self.streamed else settings

    def nbytes(self, geometry: Geometry, sequences: int, tokens: int) -> int:
        """Bytes of the copies as this machine lays them out."""
        if self.streamed:
            return 0
        return self.shape(geometry).score_key_bytes * geometry.layers * sequences * tokens

    def check(self, geometry: Geometry, sequences: int, tokens: int) -> None:
        """MemoryBudgetError unless the copies of ``tokens`` tokens per sequence fit their budget."""
        if not self._lack(geometry, sequences, tokens):
            return
        tokens, budget = max(tokens, _SHORT), self.budget
        assert budget is not None
        need, whole = self.nbytes(geometry, sequences, tokens), geometry.kv_bytes(tokens, sequences)
        least = str(need) if budget.share is None else f"{-(-need * 10000 // whole) / 100:g}%"
        raise MemoryBudgetError(
            f"scoring_bytes of {budget} is {budget.resolve(whole)} bytes, and the {self.name} copy of {tokens} tokens' "
            f"keys takes {need}: give at least that (--scoring-bytes {least}), or take a smaller copy "
            "(--scoring-copy auto)"
        )

    def _lack(self, geometry: Geometry, sequences: int, tokens: int) -> bool:
        tokens = max(tokens, _SHORT)
        whole = geometry.kv_bytes(tokens, sequences)
        return self.budget is not None and self.nbytes(geometry, sequences, tokens) > self.budget.resolve(whole)


def _candidates(asked: str, *, limited: bool) -> Sequence[str]:
    """Names of the copies that settings leave the choice between, the finest first."""
    if asked == "auto":
        return list(KINDS)
    if asked == "projected":
        return [name for name in KINDS if name.startswith("projected")] if limited else ["projected/4"]
    return [asked]
