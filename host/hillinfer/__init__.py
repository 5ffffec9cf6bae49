"""HillInfer: long-context LLM decoding on one PC, with the whole KV cache in three tiers, scored where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hillinfer.version import __version__

if TYPE_CHECKING:
    from hillinfer.generation import generate
    from hillinfer.integrations.transformers import HillInferCache
    from hillinfer.policies import HillInfer

__all__ = ["HillInfer", "HillInferCache", "__version__", "generate"]

_HOMES = {
    "HillInfer": "hillinfer.policies",
    "HillInferCache": "hillinfer.integrations.transformers",
    "generate": "hillinfer.generation",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, so that importing the package stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
