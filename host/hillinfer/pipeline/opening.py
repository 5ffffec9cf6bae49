"""Which engine serves a policy: the only place that knows all kinds of both."""

from __future__ import annotations

import torch

from hillinfer.config import StoreSettings
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.pipeline.evicting import EvictingEngine
from hillinfer.pipeline.hetero import HeteroEngine
from hillinfer.pipeline.recording import Recording, RecordingEngine
from hillinfer.pipeline.watching import WatchingEngine
from hillinfer.policies.base import Policy, SelectingPolicy
from hillinfer.policies.evicting import EvictingPolicy
from hillinfer.policies.heterocache import HeteroCache
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.policies.watching import Watching

_SERVED = (SelectingPolicy, IndexingPolicy, EvictingPolicy, HeteroCache, Recording, Watching)


def check_served(policy: Policy) -> None:
    """SettingError for a policy that no engine runs, such as the stock cache's."""
    if not isinstance(policy, _SERVED):
        raise SettingError(f"no engine of HillInfer runs the policy {policy.name!r}: use transformers' DynamicCache")


def open_engine(
    geometry: Geometry,
    policy: Policy,
    settings: StoreSettings,
    *,
    sequences: int,
    max_tokens: int,
    device: torch.device,
    expected: int = 0,
) -> Engine:
    """The engine of the policy's kind, for a batch of ``sequences``, empty.

    max_tokens   most tokens a sequence may ever have; memory for tables and pools is reserved for it, not taken
    device       the compute device
    expected     tokens a sequence will have as far as is known: budgets must do for them

    Raises SettingError for a budget below the policy's minimum, and what the engine raises for tiers that don't serve.
    """
    check_served(policy)
    policy = policy.fitted(geometry, sequences)
    policy.check(expected)
    if not isinstance(policy, SelectingPolicy) and settings.scoring_copy != "auto":
        raise SettingError(
            f"the policy {policy.name} has no keys scanned so: leave scoring_copy {settings.scoring_copy} out"
        )
    if isinstance(policy, Recording):
        return RecordingEngine(geometry, policy, sequences=sequences, device=device)
    sizes = {"sequences": sequences, "max_tokens": max_tokens, "expected": expected}
    if isinstance(policy, EvictingPolicy):
        return EvictingEngine(geometry, policy, settings, device=device, **sizes)
    if isinstance(policy, HeteroCache):
        return HeteroEngine(geometry, policy, settings, device=device, **sizes)
    if isinstance(policy, Watching):
        return WatchingEngine(geometry, policy, sequences=sequences, device=device)
    assert isinstance(policy, SelectingPolicy | IndexingPolicy)
    return TieredEngine(geometry, policy, settings, device=device, **sizes)
