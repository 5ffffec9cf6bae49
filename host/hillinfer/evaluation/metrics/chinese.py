"""Chinese has no spaces between words: jieba finds them, by its dictionary."""

from __future__ import annotations

import logging

from hillinfer.evaluation.metrics.needed import needed


def words(text: str) -> list[str]:
    """The words of a text in jieba's accurate mode; together they are the text."""
    jieba = needed("jieba")
    jieba.setLogLevel(logging.WARNING)  # it tells on stderr that it reads its dictionary
    return list(jieba.cut(text, cut_all=False))
