"""The policies by name. Adding one: a file, a line here, a line in the test matrix."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

from hillinfer.errors import SettingError
from hillinfer.policies.base import Policy
from hillinfer.policies.cake import CAKE
from hillinfer.policies.full import Full
from hillinfer.policies.h2o import H2O
from hillinfer.policies.heterocache import HeteroCache
from hillinfer.policies.hillinfer import HillInfer
from hillinfer.policies.infinigen import InfiniGen
from hillinfer.policies.leoam import LeoAM
from hillinfer.policies.omnikv import OmniKV
from hillinfer.policies.pyramidkv import PyramidKV
from hillinfer.policies.quest import Quest
from hillinfer.policies.shadowkv import ShadowKV
from hillinfer.policies.snapkv import SnapKV
from hillinfer.policies.streaming_llm import StreamingLLM

_POLICIES: dict[str, type[Policy]] = {
    HillInfer.name: HillInfer,
    Full.name: Full,
    StreamingLLM.name: StreamingLLM,
    H2O.name: H2O,
    SnapKV.name: SnapKV,
    PyramidKV.name: PyramidKV,
    CAKE.name: CAKE,
    Quest.name: Quest,
    LeoAM.name: LeoAM,
    InfiniGen.name: InfiniGen,
    ShadowKV.name: ShadowKV,
    OmniKV.name: OmniKV,
    HeteroCache.name: HeteroCache,
}


def names() -> list[str]:
    """Names of all policies."""
    return list(_POLICIES)


def create(name: str, **settings: Any) -> Policy:
    """The policy ``name`` with these settings; SettingError names the nearest one for a name that is not known."""
    if name not in _POLICIES:
        raise SettingError(f"unknown policy {name!r}{_nearest(name, names())}")
    policy = _POLICIES[name]
    fields = [field.name for field in dataclasses.fields(policy)]
    for setting in settings:
        if setting not in fields:
            raise SettingError(f"the policy {name} has no setting {setting!r}{_nearest(setting, fields)}")
    return policy(**settings)


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f": known are {', '.join(known)}" if known else ": it has none"
