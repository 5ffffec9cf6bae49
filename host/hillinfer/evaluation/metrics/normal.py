"""Answers without what makes no difference: case, punctuation, articles, spaces.

English by SQuAD's rule, Chinese by LongBench's (metrics.py of THUDM/LongBench).
"""

from __future__ import annotations

import re
import string

_ASCII = frozenset(string.punctuation)
# LongBench's own list: with 》 and without 《, with ‧ and without ·.
_CHINESE = frozenset(
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏."
)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normal_english(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces: "The U.S., (1999)" becomes "us 1999"."""
    text = "".join(letter for letter in text.lower() if letter not in _ASCII)
    return " ".join(_ARTICLES.sub(" ", text).split())


def normal_chinese(text: str) -> str:
    """Lower case, no punctuation of either script, no spaces at all."""
    text = "".join(letter for letter in text.lower() if letter not in _ASCII and letter not in _CHINESE)
    return "".join(text.split())
