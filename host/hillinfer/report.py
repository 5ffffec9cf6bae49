"""What one run did: bytes per tier, hit rates, times. Filled by the engine, printed by the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class TierBytes:
    """Bytes a tier holds now and held at most."""

    bytes: int = 0
    peak_bytes: int = 0

    def set(self, nbytes: int) -> None:
        self.bytes = nbytes
        self.peak_bytes = max(self.peak_bytes, nbytes)


@dataclass
class Tiers:
    """The three tiers: compute device, hot pool (DRAM), cold pool (files).

    ``scoring`` is what the storage device keeps besides, of keys to be scanned: the software device in DRAM.
    """

    device: TierBytes = field(default_factory=TierBytes)
    hot: TierBytes = field(default_factory=TierBytes)
    cold: TierBytes = field(default_factory=TierBytes)
    scoring: TierBytes = field(default_factory=TierBytes)


@dataclass
class Report:
    """One generation, batch of one; the keys of ``hillinfer generate --json``.

    hot_hit_rate      selected tokens found in the hot pool / selected tokens not in the device tier; None if none
    moved_fraction    rows that entered the hot pool per step and stream / rows the pool holds; None without steps
    cold_read_bytes   selected keys and values read from the cold pool while decoding
    device_scan_bytes bytes of keys the storage device scored while decoding
    device            the storage device, as it was named; None: there was none
    device_launches   launches of the kernel on it, and device_seconds from the first of each query to its last score
    device_fallback   why the software device took its place; None: it did not
    host_share        share of the tokens scored by the host; None where the split of the scoring was not to be balanced
    balance_error     |T_cpu − T_csd| / max of the last steps' two paths; None as before
    lookahead_hit_rate  cold rows that were on their way before the step asked for them / cold rows of such steps
    lookahead_rows    rows read ahead of the steps, wanted then or not
    scoring_copy      what of the keys it scanned: "int8", "int4", "projected/4", …; None: nothing was scored
    drops             whether the policy drops tokens, which cannot come back
    dropped_tokens    tokens that a KV head no longer has at the end, mean over layers and heads
    events            what else happened how often while decoding, by the policy's own names ("drifts", "refills")
    budget            what the policy may keep or attend to, as it was given; None for a policy without one
    """

    text: str
    prompt_tokens: int
    new_tokens: int
    prefill_tokens_per_s: float
    decode_ms_per_token: float | None
    rss_peak_bytes: int
    tiers: Tiers
    hot_hit_rate: float | None
    moved_fraction: float | None
    cold_read_bytes: int
    device_scan_bytes: int
    alpha: float | None
    policy: str
    device: str | None
    device_launches: int = 0
    device_seconds: float = 0.0
    device_fallback: str | None = None
    scoring_copy: str | None = None
    host_share: float | None = None
    balance_error: float | None = None
    lookahead_hit_rate: float | None = None
    lookahead_rows: int = 0
    drops: bool = False
    dropped_tokens: float = 0.0
    events: dict[str, int] = field(default_factory=dict)
    budget: str | None = None
    model: str = ""
    document_tokens_cut: int = 0

    def as_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return asdict(self)
