"""The harness's multiple-choice tasks as tasks of ours: its documents, prompts, choices and accuracy, our caches."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from hillinfer.errors import DocumentError, SettingError
from hillinfer.evaluation.harness import tasks
from hillinfer.evaluation.harness.encoding import encode_pair
from hillinfer.evaluation.several import Several
from hillinfer.evaluation.task import Asking, Item, Task


@dataclass(frozen=True)
class DocumentItem(Item):
    """An item with the document it was made of, as the harness has it."""

    document: Mapping[str, Any] = field(default_factory=dict)


class Harness(Several):
    """The tasks of the harness that the papers evaluate; ``only`` makes the task of any other name too.

    Zero-shot, or with as many examples as the task's own file asks for, and without a chat template, as the harness
    does unless it is told otherwise. A choice's likelihood is that of its tokens after the context's, which is read
    once for all choices and all policies. Scores are the harness's ``acc``; the gold choice's likelihood is the row's.
    """

    name = "harness"
    source = "EleutherAI/lm-evaluation-harness"
    subsets = tuple(tasks.FOLDERS)

    def __init__(self) -> None:
        self._tasks: dict[str, Any] = {}

    @classmethod
    def only(cls, subset: str) -> type[Task]:
        """The task "harness/<subset>"; the harness tells of names it does not know when it is asked for items."""
        return type(f"Harness_{subset}", (cls,), {"name": f"harness/{subset}", "asked": (subset,)})

    def check(self, data: Path | None, limit: int | None) -> None:  # noqa: ARG002  # documents are not read one by one
        """Load the harness's tasks with their data, for ``items``."""
        for subset in self.asked:
            if subset not in self._tasks:
                self._tasks[subset] = _multiple_choice(subset, tasks.load(subset, data))

    def items(self, asking: Asking) -> Iterator[Item]:
        """Documents in the harness's order. Their context is the longest one's, whatever lengths are asked for."""
        self.check(asking.data, asking.limit)
        for subset in self.asked:
            task = self._tasks[subset]
            with redirect_stderr(io.StringIO()):  # a bar of its own
                task.build_all_requests(limit=asking.limit, rank=0, world_size=1)
            documents: dict[int, list[Any]] = {}
            for instance in task.instances:
                documents.setdefault(instance.doc_id, []).append(instance)
            items = [self._item(subset, task, each, asking) for each in documents.values()]
            context = max(len(item.prompt) + max(map(len, item.choices)) for item in items)
            yield from (_of_context(item, context) for item in items)

    def _item(self, subset: str, task: Any, instances: Sequence[Any], asking: Asking) -> DocumentItem:
        instances = sorted(instances, key=lambda instance: int(instance.idx))
        pairs = [encode_pair(asking.tokenizer, *instance.args) for instance in instances]
        contexts = {tuple(context) for context, _ in pairs}
        if len(contexts) != 1:
            raise SettingError(f"harness/{subset} has a context for every choice: {_ELSEWHERE}")
        document = instances[0].doc
        gold = _gold(f"{subset}, document {instances[0].doc_id}", task, document)
        return DocumentItem(
            identity=f"{subset}/{instances[0].doc_id}",
            context=0,
            prompt=torch.tensor(pairs[0][0], dtype=torch.int64),
            answer=torch.tensor(pairs[gold][1], dtype=torch.int64),
            labels={"subset": subset},
            choices=[torch.tensor(continuation, dtype=torch.int64) for _, continuation in pairs],
            document=document,
        )

    def score(self, item: Item, said: str) -> float:
        """Nothing is said."""
        raise NotImplementedError(f"{item.identity} has choices")

    def choose(self, item: Item, likely: Sequence[float]) -> float:
        """The harness's accuracy: 1 if the gold choice is the likeliest."""
        assert isinstance(item, DocumentItem)
        task = self._tasks[str(item.labels["subset"])]
        return float(task.process_results(item.document, [(each, False) for each in likely])["acc"])


_ELSEWHERE = "run it with python -m hillinfer.evaluation.harness (see docs/evaluation.md)"


def _multiple_choice(name: str, task: Any) -> Any:
    metrics = [str(each.get("metric")) for each in task.config.metric_list or ()]
    if task.OUTPUT_TYPE != "multiple_choice" or "acc" not in metrics or "acc_mutual_info" in metrics:
        raise SettingError(f"harness/{name} is not a task of choices judged by accuracy: {_ELSEWHERE}")
    return task


def _gold(where: str, task: Any, document: Mapping[str, Any]) -> int:
    """The number of the right choice. A field that only some records of a file have is null in the others."""
    missing = [name for name, value in document.items() if value is None]
    if missing and task.config.task in tasks.FOLDERS:
        raise DocumentError(f"{where} lacks {', '.join(missing)}: download the file again")
    gold, choices = task.doc_to_target(document), task.doc_to_choice(document)
    number = choices.index(gold) if gold in choices else int(gold)
    if not 0 <= number < len(choices):
        raise DocumentError(f"{where} has the label {number}, as files without answers have: take one with answers")
    return number


def _of_context(item: DocumentItem, context: int) -> DocumentItem:
    return DocumentItem(**(vars(item) | {"context": context}))
