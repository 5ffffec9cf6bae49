"""The contract between a task and the runner: a task says what is asked and judges what was said, and no more.

A task knows neither models nor policies; the runner knows no task. A new task is one file and one line of the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch

from hillinfer.evaluation.shelf import Shelf


@dataclass(frozen=True)
class Item:
    """One prompt, and what is expected of it.

    identity    names it among the items of its task, the same in every run with the same seed: "4096/0.5/2"
    context     the length it stands for in tables, tokens
    prompt      int64 [n], what is read before anything is decoded
    answer      int64 [m], m ≥ 1: the gold answer, or a text's continuation; its likelihood is measured
    references  answers that are right, as text; empty for a text
    new_tokens  how many tokens the model may say; 0 if only the answer's likelihood counts
    labels      what else tables and pictures sort by: {"depth": 0.5}, {"subset": "hotpotqa"}
    cut         tokens of the original prompt that were left out so that it fits
    text        names what other items of the same task and context have in common with this one, such as the text
                that things are hidden in; "" where they have nothing in common: intervals take them as one or apart
    choices     int64 [m], m ≥ 1, each: answers of which one is to be the likeliest, where nothing is said
    """

    identity: str
    context: int
    prompt: torch.Tensor
    answer: torch.Tensor
    references: Sequence[str] = ()
    new_tokens: int = 0
    labels: Mapping[str, float | str] = field(default_factory=dict)
    cut: int = 0
    choices: Sequence[torch.Tensor] = ()
    text: str = ""


@dataclass(frozen=True)
class Asking:
    """What the runner gives a task to make its items from.

    tokenizer   transformers' of the model
    lengths     contexts wanted, tokens; tasks whose prompts have lengths of their own take the longest as the room
    limit       items at most of each context (and subset); None: as many as the task has
    seed        of everything that is drawn
    text        path of a UTF-8 text to hide things in or to continue; None: the project's own
    chat        whether what is made here is asked in the model's chat template; data sets say so themselves
    data        folder of the data set's files, where the task reads any; None: the hub
    shelf       gives out the text's stretches; all tasks that are pooled have the same one
    """

    tokenizer: Any
    lengths: Sequence[int]
    limit: int | None = None
    seed: int = 0
    text: Path | None = None
    data: Path | None = None
    chat: bool = False
    shelf: Shelf = field(default_factory=Shelf)


class Task(ABC):
    """One task. ``score`` is a number from 0 to 1, higher is better, for tasks in which something is said.

    retrieval   what is asked for stands in the prompt word for word, so a policy within the full cache's interval lost
                nothing
    """

    name: ClassVar[str]
    source: ClassVar[str]
    retrieval: ClassVar[bool] = False

    def check(self, data: Path | None, limit: int | None) -> None:  # noqa: B027  # most read no files
        """DocumentError for what is wrong with the data, before there is a model; arguments as in ``Asking``."""

    @abstractmethod
    def items(self, asking: Asking) -> Iterator[Item]:
        """All items, in an order that a cut-off run can rely on. DocumentError where data is missing or broken."""

    @abstractmethod
    def score(self, item: Item, said: str) -> float:
        """How right what was said is. Not called for items with ``new_tokens`` 0."""

    def choose(self, item: Item, likely: Sequence[float]) -> float:
        """How right the model is about an item with choices, from the log-likelihood of each, nats."""
        raise NotImplementedError(f"{self.name} has items with choices and does not judge them")

    def settled(self, item: Item, said: str) -> bool:  # noqa: ARG002  # most can't say
        """Whether the score is certain by now, whatever is said after this: the runner then saves the rest."""
        return False
