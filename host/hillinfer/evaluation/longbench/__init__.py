"""LongBench (Bai et al., ACL 2024): 21 subsets, English, Chinese and code, up to some 20,000 words."""
