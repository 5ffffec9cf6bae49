"""LongBench v2 (Bai et al., 2024): 503 questions of four choices over 8,000 to 2,000,000 words."""
