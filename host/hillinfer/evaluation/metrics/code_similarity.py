"""Code completion: how alike the first line of code said is to the right one, by edits (LongBench)."""

from __future__ import annotations

from hillinfer.evaluation.metrics.needed import needed


def code_similarity(said: str, truth: str) -> float:
    """Whole per cents of 1 − edits/(both lengths), edits being characters taken out and put in.

    The line is the first without a backquote, "#" or "//"; "" if all have one. LongBench calls fuzzywuzzy's ratio,
    which with python-Levenshtein is this number rounded to whole per cents, half to even; rapidfuzz gives it unrounded.
    (Without python-Levenshtein fuzzywuzzy falls back to difflib, whose greedy blocks may find fewer matches.)
    """
    lines = said.lstrip("\n").split("\n")
    line = next((each for each in lines if not any(mark in each for mark in ("`", "#", "//"))), "")
    return round(float(needed("rapidfuzz.fuzz").ratio(line, truth))) / 100
