"""KV cache policies: which tokens are attended."""

from hillinfer.policies.base import Budgeted, Policy, SelectingPolicy
from hillinfer.policies.budget import TokenBudget
from hillinfer.policies.cake import CAKE
from hillinfer.policies.evicting import Chunk, EvictingPolicy, Evictor
from hillinfer.policies.full import Full
from hillinfer.policies.h2o import H2O
from hillinfer.policies.heterocache import HeteroCache
from hillinfer.policies.hillinfer import HillInfer
from hillinfer.policies.indexing import Index, IndexingPolicy
from hillinfer.policies.infinigen import InfiniGen
from hillinfer.policies.leoam import LeoAM
from hillinfer.policies.omnikv import OmniKV
from hillinfer.policies.pyramidkv import PyramidKV
from hillinfer.policies.quest import Quest
from hillinfer.policies.registry import create, find, names, register
from hillinfer.policies.shadowkv import ShadowKV
from hillinfer.policies.snapkv import SnapKV
from hillinfer.policies.streaming_llm import StreamingLLM
from hillinfer.store.kept_rows import Held

__all__ = [
    "CAKE",
    "H2O",
    "Budgeted",
    "Chunk",
    "EvictingPolicy",
    "Evictor",
    "Full",
    "Held",
    "HeteroCache",
    "HillInfer",
    "Index",
    "IndexingPolicy",
    "InfiniGen",
    "LeoAM",
    "OmniKV",
    "Policy",
    "PyramidKV",
    "Quest",
    "SelectingPolicy",
    "ShadowKV",
    "SnapKV",
    "StreamingLLM",
    "TokenBudget",
    "create",
    "find",
    "names",
    "register",
]
