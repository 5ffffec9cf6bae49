"""Adapters to libraries that run models."""
