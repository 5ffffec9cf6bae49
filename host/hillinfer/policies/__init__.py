"""KV cache policies: which tokens are attended."""

from hillinfer.policies.base import Policy, SelectingPolicy
from hillinfer.policies.full import Full
from hillinfer.policies.hillinfer import HillInfer
from hillinfer.policies.registry import create, names

__all__ = ["Full", "HillInfer", "Policy", "SelectingPolicy", "create", "names"]
