"""Evaluation: what a policy's shorter look at the cache costs on real tasks, beside the full cache on the same ones."""
