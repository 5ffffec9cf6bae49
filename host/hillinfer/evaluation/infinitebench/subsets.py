"""InfiniteBench's subsets: length of the answer and metric of each, as its own code has them.

From OpenBMB/InfiniteBench, src/: eval_utils.py (DATA_NAME_TO_MAX_NEW_TOKENS, create_prompt, get_answer) and
compute_scores.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hillinfer.evaluation.metrics.choice import book_choice, code_choice
from hillinfer.evaluation.metrics.number_found import first_digits, first_number, last_integer, leading_values
from hillinfer.evaluation.metrics.qa_f1 import qa_f1, qa_f1_characters
from hillinfer.evaluation.metrics.rouge_lsum import rouge_lsum
from hillinfer.evaluation.metrics.word import said_name, said_word

Judge = Callable[[str, Sequence[str]], float]


@dataclass(frozen=True)
class Subset:
    """How one subset is asked and judged.

    new_tokens  the longest answer
    judge       of what was said and the record's answers
    """

    new_tokens: int
    judge: Judge


def _first(metric: Callable[[str, str], float]) -> Judge:
    return lambda said, answers: metric(said, answers[0])


def _best(metric: Callable[[str, str], float]) -> Judge:
    return lambda said, answers: max(metric(said, answer) for answer in answers)


SUBSETS = {
    "passkey": Subset(6, _first(first_digits)),
    "number_string": Subset(12, _first(first_digits)),
    "kv_retrieval": Subset(50, _first(said_word)),
    "longbook_sum_eng": Subset(1200, _best(rouge_lsum)),
    "longbook_choice_eng": Subset(40, book_choice),
    "longbook_qa_eng": Subset(40, _best(qa_f1)),
    "longbook_qa_chn": Subset(40, _best(qa_f1_characters)),
    "longdialogue_qa_eng": Subset(40, _first(said_name)),
    "math_find": Subset(3, _first(first_number)),
    "math_calc": Subset(30000, leading_values),
    "code_run": Subset(5, _first(last_integer)),
    "code_debug": Subset(5, code_choice),
}
