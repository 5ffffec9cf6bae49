"""docs/results.md, made from the measurements in docs/measured."""
