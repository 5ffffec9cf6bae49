"""InfiniteBench (Zhang et al., ACL 2024): 12 subsets over 100,000 tokens and more."""
