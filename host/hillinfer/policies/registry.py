"""The policies by name. Adding one: a file, a line here, a line in the test matrix; your own: ``register``."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from typing import Any, TypeVar

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
_OWN: dict[str, type[Policy]] = {}
_T = TypeVar("_T", bound=type[Policy])


def names() -> list[str]:
    """Names of all policies, registered ones last."""
    return [*_POLICIES, *_OWN]


def register(policy: _T) -> _T:
    """Make a policy of your own known by its ``name``: a decorator for its class, a frozen dataclass.

    A class of the same name replaces the one before, but no policy of this package. Raises SettingError.
    """
    if not (isinstance(policy, type) and issubclass(policy, Policy) and dataclasses.is_dataclass(policy)):
        raise SettingError(
            f"{getattr(policy, '__name__', policy)!r} cannot be registered: it must be a dataclass (@dataclass under "
            "@register) and a kind of policy, such as EvictingPolicy"
        )
    for attribute in ("name", "source", "keeps"):
        if not isinstance(getattr(policy, attribute, None), str):
            raise SettingError(f"the policy {policy.__name__} cannot be registered: it has no {attribute}, a str")
    if inspect.isabstract(policy):
        missing = ", ".join(sorted(policy.__abstractmethods__))
        raise SettingError(f"the policy {policy.name} cannot be registered: it does not define {missing}")
    if policy.name in _POLICIES:
        raise SettingError(f"the policy {policy.name} cannot be registered: the name is taken, choose another")
    _OWN[policy.name] = policy
    return policy


def find(name: str) -> type[Policy]:
    """The class of the policy ``name``; SettingError names the nearest one for a name that is not known."""
    known = _POLICIES | _OWN
    if name not in known:
        raise SettingError(f"unknown policy {name!r}{_nearest(name, names())}")
    return known[name]


def create(name: str, **settings: Any) -> Policy:
    """The policy ``name`` with these settings; SettingError names the nearest one for a name that is not known."""
    policy = find(name)
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
