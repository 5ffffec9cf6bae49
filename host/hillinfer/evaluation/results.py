"""What an evaluation found, as a file: the rows of the table, and every item they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from hillinfer.errors import SettingError
from hillinfer.whole_file import write_whole

VERSION: Literal[1] = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Run(_Strict):
    """One contender on one item. score 0 to 1, None where nothing is said; nll of the gold answer and kl = KL(full ‖
    this one), nats per token; bytes per tier while it was asked for."""

    policy: str
    budget: float
    score: float | None
    nll: float
    kl: float
    said: str
    device_bytes: int
    hot_bytes: int
    cold_bytes: int


class ItemResult(_Strict):
    """One item and all who had it.

    prompt  a digest of all that it has, to know it again by
    text    names the text that it shares with other items of its task and context; "": with none
    """

    task: str
    context: int
    identity: str
    prompt: str
    text: str = ""
    labels: dict[str, float | str]
    cut: int
    runs: list[Run]

    @property
    def shared(self) -> str:
        """What items of one text have in common, and no others."""
        return self.text or f"item {self.identity}"

    def run(self, policy: str, budget: float) -> Run | None:
        """What one contender did, if it had this item."""
        return next((run for run in self.runs if (run.policy, run.budget) == (policy, budget)), None)


class Row(_Strict):
    """One contender on one task at one context: means over the items, and differences to the full cache.

    interval, nll_interval   95 %, of the paired differences (decision 65); None where items are too few to tell
    texts        different ones among the items
    interval_of  "texts": intervals are about any such text; "items": there were too few, and they are about these alone
    counts       whether the full cache scores 0.5 at least: else the task says more about the model than about policies
    retrieval    whether the answer stands in the prompt word for word
    cut          items whose prompt was cut to fit
    by_label     means of the score (of the NLL where nothing is said) by label and its value
    note         why there are no figures
    """

    policy: str
    budget: float
    task: str
    context: int
    score: float | None = None
    full_score: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    nll: float | None = None
    nll_difference: float | None = None
    nll_interval: tuple[float, float] | None = None
    kl: float | None = None
    items: int = 0
    texts: int = 0
    interval_of: Literal["texts", "items"] = "texts"
    counts: bool = False
    retrieval: bool = False
    device_bytes: int | None = None
    hot_bytes: int | None = None
    cold_bytes: int | None = None
    cut: int = 0
    labels: list[str] = []
    by_label: dict[str, dict[str, float]] = {}
    note: str = ""

    @property
    def contender(self) -> str:
        """As it is written on the command line."""
        return self.policy if self.policy == "full" else f"{self.policy}@{self.budget * 100:g}%"

    @property
    def fast_bytes(self) -> int | None:
        """On the compute device and in DRAM together."""
        return None if self.device_bytes is None or self.hot_bytes is None else self.device_bytes + self.hot_bytes


class Retrieval(_Strict):
    """One contender on all retrieval rows that count, taken together: many texts tell what few items of a row cannot.

    rows, items, texts   how many; means are over items
    *interval            95 %, as in a row
    """

    policy: str
    budget: float
    rows: int
    items: int
    texts: int
    difference: float
    interval: tuple[float, float]
    nll_difference: float
    nll_interval: tuple[float, float] | None


class Results(_Strict):
    """A whole evaluation. retrieval: of every policy but the full cache; empty where no such row counts."""

    kind: Literal["hillinfer-eval"] = "hillinfer-eval"
    version: Literal[1] = VERSION
    model: str
    seed: NonNegativeInt
    versions: dict[str, str]
    settings: dict[str, Any]
    rows: list[Row]
    retrieval: list[Retrieval] = []
    items: list[ItemResult]


def write_results(path: Path, results: Results) -> None:
    """The file, whole or not at all; SettingError where it cannot be written."""
    try:
        write_whole(path, results.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise SettingError(f"{path} cannot be written ({error.strerror}): name another with --output") from None


def read_results(path: Path) -> Results:
    """A file of ``hillinfer eval``; SettingError says what else it is."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingError(f"{path} cannot be read ({error.strerror}): name a file that hillinfer eval wrote") from None
    except (ValueError, RecursionError):
        raise SettingError(f"{path} is not JSON: name a file that hillinfer eval wrote") from None
    if not isinstance(content, dict) or content.get("kind") != "hillinfer-eval":
        raise SettingError(f"{path} holds no results of hillinfer eval")
    if content.get("version") != VERSION:
        raise SettingError(f"{path} is of version {content.get('version')}, this is {VERSION}: evaluate again")
    if "items" not in content:
        raise SettingError(
            f"{path} has no items, as results that are kept in docs/measured: name the file that hillinfer eval wrote"
        )
    try:
        results = Results.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingError(f"{path} is damaged: {where}: {first['msg']}") from None
    if not results.rows:
        raise SettingError(f"{path} has no rows: evaluate again")
    return results
