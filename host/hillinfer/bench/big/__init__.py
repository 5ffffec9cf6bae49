"""Decoding from a KV cache that is larger than memory: without a model, on captured queries and keys."""
