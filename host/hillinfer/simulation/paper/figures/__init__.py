"""One figure of a paper per function, by name."""
