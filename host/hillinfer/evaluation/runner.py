"""The evaluation itself: each prompt is read once, and every contender answers from its own copy of the record."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.errors import DocumentError, SettingError
from hillinfer.evaluation.answering import Answered, answer, end_tokens, likelihood
from hillinfer.evaluation.contender import Contender
from hillinfer.evaluation.journal import Journal
from hillinfer.evaluation.reading import Reading
from hillinfer.evaluation.results import ItemResult, Results, Run
from hillinfer.evaluation.rows import rows_of, together
from hillinfer.evaluation.task import Asking, Item, Task
from hillinfer.version import __version__

Work = tuple[Task, Item]


class Evaluation:
    """Contenders, the full cache first, on all items of some tasks.

    name         of the model, for the results
    seed         of the intervals (and of the items, see ``Asking``)
    settings     what else the results depend on, JSON
    cold_dir     folder of the cold files; None: the default one
    on_progress  called with tokens of prompts done, tokens in all, and what is being done
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        name: str,
        seed: int,
        contenders: Sequence[Contender],
        settings: dict[str, Any],
        cold_dir: Path | None,
        on_progress: Callable[[int, int, str], None],
    ) -> None:
        self._model, self._tokenizer, self._name, self._seed = model, tokenizer, name, seed
        self._contenders, self._settings, self._cold_dir, self._on_progress = (
            contenders,
            settings,
            cold_dir,
            on_progress,
        )
        self._ends = end_tokens(model)
        self._reading = Reading(model, cold_dir)
        self._undefined: dict[tuple[str, float, int], str] = {}

    def work(self, plan: Sequence[tuple[Task, Asking]]) -> list[Work]:
        """All items, in order; DocumentError where there are none, or one is longer than the model can read."""
        room = self._model.config.get_text_config().max_position_embeddings
        work = [(task, item) for task, asking in plan for item in task.items(asking)]
        if not work:
            raise DocumentError("these tasks have no items for these settings: ask for other tasks, data or lengths")
        for task, item in work:
            if whole(item) > room:
                raise SettingError(
                    f"{task.name} {item.identity} has {whole(item)} tokens, more than the "
                    f"model's context of {room}: ask for shorter --lengths"
                )
        return work

    def run(self, work: Sequence[Work], journal_path: Path, model_files: str = "") -> Results:
        """Everything that the journal at ``journal_path`` does not have yet, and then the whole.

        model_files   what tells the model's files from others, see ``model_files``; in the journal, not in the results

        Raises SettingError if the journal is of another evaluation.
        """
        key = {
            "model": self._name,
            "model files": model_files,
            "seed": self._seed,
            "versions": versions(),
            "settings": self._settings,
        }
        with Journal(journal_path, key) as journal:
            items = [ItemResult.model_validate(line) for line in journal.finished]
            finished = [(done.task, done.identity, done.prompt) for done in items]
            if finished != [(task.name, item.identity, digest(item)) for task, item in work[: len(items)]]:
                raise SettingError(f"{journal_path} is of other texts or data: delete it, and the run starts anew")
            sizes = [len(item.prompt) for _, item in work]
            for number in range(len(items), len(work)):
                task, item = work[number]
                where = f"{task.name}, {item.context} tokens ({number + 1} of {len(work)})"
                self._on_progress(sum(sizes[:number]), sum(sizes), where)
                items.append(self._answer(task, item))
                journal.append(items[-1].model_dump())
            self._on_progress(sum(sizes), sum(sizes), "done")
            retrieval = {task.name: task.retrieval for task, _ in work}
            rows = rows_of(items, self._reasons(items, work), retrieval, self._seed)
            return Results(
                model=self._name,
                seed=self._seed,
                versions=versions(),
                settings=self._settings,
                rows=rows,
                retrieval=together(rows, items, self._seed),
                items=items,
            )

    def _answer(self, task: Task, item: Item) -> ItemResult:
        self._reading.read(item.prompt[:-1])
        runs: list[Run] = []
        full: torch.Tensor | None = None
        for contender in self._contenders:
            if self._why_not(contender, item):
                continue
            opening = functools.partial(self._reading.open, contender, whole(item))
            answered = answer(self._model, opening, item, self._ends, functools.partial(self._settled, task, item))
            full = answered.logprobs if full is None else full
            likely = [likelihood(self._model, opening, item, choice) for choice in item.choices]
            runs.append(self._run(task, item, contender, answered, likely, full))
        return ItemResult(
            task=task.name,
            context=item.context,
            identity=item.identity,
            prompt=digest(item),
            text=item.text,
            labels=dict(item.labels),
            cut=item.cut,
            runs=runs,
        )

    def _run(
        self, task: Task, item: Item, contender: Contender, answered: Answered, likely: list[float], full: torch.Tensor
    ) -> Run:
        said = self._text(answered.said)
        score = task.score(item, said) if item.new_tokens else None
        tiers = answered.tiers
        return Run(
            policy=contender.policy,
            budget=contender.budget,
            score=task.choose(item, likely) if item.choices else score,
            nll=-float(answered.logprobs.gather(1, item.answer[:, None]).mean()),
            kl=float((full.exp() * (full - answered.logprobs)).sum(-1).mean()),
            said=said,
            device_bytes=tiers.device.bytes,
            hot_bytes=tiers.hot.bytes,
            cold_bytes=tiers.cold.bytes,
        )

    def _settled(self, task: Task, item: Item, said: list[int]) -> bool:
        return task.settled(item, self._text(said))

    def _text(self, said: list[int]) -> str:
        return str(self._tokenizer.decode(said, skip_special_tokens=True))

    def _reasons(self, items: Sequence[ItemResult], work: Sequence[Work]) -> dict[tuple[str, float, str, int], str]:
        """Why contenders have no figures on some items; of those that were finished before, too."""
        reasons: dict[tuple[str, float, str, int], str] = {}
        for done, (_, item) in zip(items, work, strict=True):
            for contender in self._contenders:
                policy, budget = contender.policy, contender.budget
                if done.run(policy, budget) is None:
                    reasons.setdefault((policy, budget, done.task, done.context), self._why_not(contender, item))
        return reasons

    def _why_not(self, contender: Contender, item: Item) -> str:
        """Why it can't have its budget at an item's context, or in as few tokens as the item has; "" if it can."""
        if contender.full:
            return ""
        for tokens in (item.context, whole(item)):
            key = (contender.policy, contender.budget, tokens)
            if key not in self._undefined:
                self._undefined[key] = contender.undefined(self._model, tokens, self._cold_dir)
            if self._undefined[key]:
                return self._undefined[key]
        return ""

    def close(self) -> None:
        """Forget the last prompt."""
        self._reading.close()


def whole(item: Item) -> int:
    """Tokens of an item's prompt and of the longest that may come after it, but the last, which is never read."""
    return len(item.prompt) - 1 + max(item.new_tokens, *map(len, [item.answer, *item.choices]))


def digest(item: Item) -> str:
    """Of all that an item has, what is right and the choices, too: the same item in another run has the same."""
    told = json.dumps(vars(item), sort_keys=True, default=_plain)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, torch.Tensor) else str(value)


def versions() -> dict[str, str]:
    """Of what computes the results."""
    libraries = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    return {"hillinfer": __version__, **libraries}
