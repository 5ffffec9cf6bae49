"""Benchmarks: measured side by side in one run, printed as a table, written as JSON. Ratios are what counts."""
