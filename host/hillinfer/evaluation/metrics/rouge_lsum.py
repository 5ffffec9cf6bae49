"""ROUGE-Lsum as InfiniteBench takes it: F of the package ``rouge_score``, which the evaluate library calls."""

from __future__ import annotations

from hillinfer.evaluation.metrics.needed import needed


def rouge_lsum(said: str, truth: str) -> float:
    """F of summary-level ROUGE-L over lines, words without stemming; 0 where one side has no word."""
    scorer = needed("rouge_score.rouge_scorer").RougeScorer(["rougeLsum"])
    return float(scorer.score(truth, said)["rougeLsum"].fmeasure)
