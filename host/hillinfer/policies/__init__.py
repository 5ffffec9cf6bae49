"""KV cache policies: which tokens are attended."""

from hillinfer.policies.base import Budgeted, Policy, SelectingPolicy
from hillinfer.policies.budget import TokenBudget
from hillinfer.policies.full import Full
from hillinfer.policies.hillinfer import HillInfer
from hillinfer.policies.registry import create, names

__all__ = ["Budgeted", "Full", "HillInfer", "Policy", "SelectingPolicy", "TokenBudget", "create", "names"]
