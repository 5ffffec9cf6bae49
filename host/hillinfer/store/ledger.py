"""Bytes per tier, now and at peak, and what moved: counted where it happens, read by reports and by tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from hillinfer.report import Tiers


@dataclass
class Ledger:
    """Counts of one engine.

    selected_hot, selected_cold   selected tokens found in the hot pool / read from the cold pool, while decoding
    moved_rows, pool_rows         rows that entered the hot pool while decoding; its size, summed over the steps
    cold_read_bytes               selected rows read from the cold pool while decoding
    host_scored, device_scored    tokens scored by each side, while decoding
    ahead_rows                    rows read from the cold pool before a step asked for them (lookahead)
    ahead_hits, ahead_of          those that it then asked for; the cold rows of all steps that something was read for
    dropped_tokens                cached tokens that a KV head no longer has, mean over layers, sequences and heads
    events                        what else happened how often, by the policy's own names ("drifts")
    """

    tiers: Tiers = field(default_factory=Tiers)
    selected_hot: int = 0
    selected_cold: int = 0
    moved_rows: int = 0
    pool_rows: int = 0
    cold_read_bytes: int = 0
    host_scored: int = 0
    device_scored: int = 0
    ahead_rows: int = 0
    ahead_hits: int = 0
    ahead_of: int = 0
    dropped_tokens: float = 0.0
    events: dict[str, int] = field(default_factory=dict)

    def change(self, *, device: int = 0, hot: int = 0, cold: int = 0) -> None:
        """A tier's bytes grew (or shrank) by so much."""
        for tier, delta in ((self.tiers.device, device), (self.tiers.hot, hot), (self.tiers.cold, cold)):
            if delta:
                tier.set(tier.bytes + delta)

    def event(self, name: str, times: int = 1) -> None:
        """Something of this name happened."""
        self.events[name] = self.events.get(name, 0) + times

    def step(self, *, hot: int, cold: int, cold_bytes: int) -> None:
        """A step selected so many tokens from each pool."""
        self.selected_hot += hot
        self.selected_cold += cold
        self.cold_read_bytes += cold_bytes

    def scored(self, *, host: int, device: int) -> None:
        """Tokens scored by each side in one evaluation."""
        self.host_scored += host
        self.device_scored += device

    def foreseen(self, *, hits: int, rows: int) -> None:
        """A step asked for so many cold rows, of which hits were on their way already."""
        self.ahead_hits += hits
        self.ahead_of += rows

    def moved(self, rows: int, pool_rows: int, *, step: bool) -> None:
        """Rows entered the hot pool; ``step``: the pool's size counts for the mean."""
        self.moved_rows += rows
        self.pool_rows += pool_rows if step else 0

    @property
    def hot_hit_rate(self) -> float | None:
        """Selected tokens found in the hot pool / selected tokens outside the device tier."""
        selected = self.selected_hot + self.selected_cold
        return self.selected_hot / selected if selected else None

    @property
    def lookahead_hit_rate(self) -> float | None:
        """Share of the cold rows that were on their way before the step asked for them."""
        return self.ahead_hits / self.ahead_of if self.ahead_of else None

    @property
    def moved_fraction(self) -> float | None:
        """Share of the hot pool that changed per step."""
        return self.moved_rows / self.pool_rows if self.pool_rows else None


@dataclass
class LowerTiers(Ledger):
    """Of an engine whose streams lie below the compute device: their newest rows wait in DRAM, and count there."""

    def change(self, *, device: int = 0, hot: int = 0, cold: int = 0) -> None:
        super().change(hot=device + hot, cold=cold)

    def on_device(self, delta: int) -> None:
        """What the engine itself holds on the compute device grew (or shrank) by so many bytes."""
        super().change(device=delta)
