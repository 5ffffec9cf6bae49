"""What pictures and page read of each report: the JSON that commands write to build/reports, checked field by field.

Further fields of a report are let be. What may be None is what a command could not measure, or what was left out of a
report that was copied from a page.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Stamp(_Read):
    """When, where and by what a kept report was measured; of reports in docs/measured.

    note      what is not as the command wrote it
    remarks   what there is to say about this very run; they go with it when another one takes its place
    """

    date: str
    machine: str
    command: str
    note: str = ""
    remarks: list[str] = []


class Report(_Read):
    """Of every file. versions: of what it ran on, where the command wrote them."""

    model: str = ""
    measured: Stamp | None = None
    versions: dict[str, Any] = {}


class Limit(_Read):
    """What stops a figure: in words, the figure there, and how many times the time there was taken."""

    bound: str
    value: float
    distance: float


class Bench(Report):
    """bench.json. summary: figures by name; reasons: why one is None; bounds: what stops it, of the same run."""

    summary: dict[str, float | None]
    reasons: dict[str, str] = {}
    bounds: dict[str, Limit] = {}


class Step(_Read):
    context: int
    label: str
    synthetic: bool = False
    ms: float | None
    ratio: float | None = None
    added_ms: float | None = None
    added_ratio: float | None = None
    note: str = ""


class Quality(_Read):
    label: str
    kl: float
    kl_per_passage: list[float] = []
    agreement: float
    hot_hit_rate: float | None = None
    moved_fraction: float | None = None
    cold_read_bytes_per_token: float | None = None


class Prefill(_Read):
    label: str
    tokens: int
    seconds: float
    tokens_per_s: float
    first_token_s: float


class Decode(Report):
    """decode.json."""

    tokens: int
    passages: int = 0
    decoded: int = 0
    hot: str = ""
    speed: list[Step]
    quality: list[Quality] = []
    prefill: list[Prefill] = []
    summary: dict[str, float | None] = {}


class Growth(Report):
    """growth.json."""

    class Fit(_Read):
        label: str
        exponent: float | None
        factor: float | None
        error: float | None = None

    rows: list[Step]
    fits: list[Fit]


class Scored(_Read):
    key_format: str
    group: int
    head_dim: int
    threads: int
    rate: float
    share_of_read: float
    over_torch: float | None = None


class Scorer(Report):
    """scorer.json."""

    figures: list[Scored]


class BigRow(_Read):
    shape: str
    context: int
    sequences: int
    layers: int | None = None
    method: str
    equal: str
    budget: float
    layer_ms: float | None
    reads_ms: float | None = None
    captured: float | None = None
    hot_hit_rate: float | None = None
    moved_fraction: float | None = None
    note: str = ""


class Big(Report):
    """big.json."""

    rows: list[BigRow]
    dram: float = 0.25
    alpha: float = 0.1
    summary: dict[str, float | None] = {}


class Split(_Read):
    share: float
    cpu: float
    csd: float
    step: float


class Balance(Report):
    """balance.json. points: empty in a report copied from a page without them."""

    points: list[Split] = []
    settings: dict[str, Any] = {}
    formula_share: float | None = None
    best_share: float | None = None
    followed: Split | None = None
    summary: dict[str, float | None]


class AblationRow(_Read):
    label: str
    ms: float
    times_stock: float
    hot_hit_rate: float | None = None
    moved_fraction: float | None = None


class Ablation(Report):
    """ablation.json."""

    tokens: int
    alpha: float
    hot: str
    rows: list[AblationRow]


class PolicyRow(_Read):
    policy: str
    context: int
    budget: float
    kl: float | None = None
    passkey: float | None = None
    device_bytes: int | None = None
    hot_bytes: int | None = None
    fast_share: float | None = None
    ms_per_token: float | None = None
    drops: bool = False
    note: str = ""

    def fast(self, whole: PolicyRow | None) -> float | None:
        """Bytes on the device and in DRAM over those of the full cache."""
        if self.fast_share is not None:
            return self.fast_share
        full = 0 if whole is None else (whole.device_bytes or 0) + (whole.hot_bytes or 0)
        if not full or self.device_bytes is None or self.hot_bytes is None:
            return None
        return (self.device_bytes + self.hot_bytes) / full


class Policies(Report):
    """policies.json."""

    rows: list[PolicyRow]


class CopyRow(_Read):
    model: str = ""
    copied: str = Field(alias="copy")
    alpha: float
    kl_of_text: dict[str, float]
    kv_share: float


class Copies(Report):
    """copies.json."""

    rows: list[CopyRow]


class Rate(_Read):
    kind: str
    engine: str
    row_bytes: int
    depth: int
    per_s: float
    mib_s: float


class Io(Report):
    """io.json."""

    figures: list[Rate]


class KernelFormat(_Read):
    cycles_per_beat: float
    cycles_per_beat_goal: float
    fixed_cycles: int
    latency_cycles: int
    gbps_at_200mhz: float
    gbps_at_300mhz: float
    lut: float | None = None
    ff: float | None = None
    dsp: float | None = None
    bram: float | None = None


class Kernel(Report):
    """kernel.json."""

    formats: dict[str, KernelFormat]
    memory_gb_per_s: dict[str, float] = {}
    card: dict[str, float] = {}


class EvalRow(_Read):
    policy: str
    budget: float
    task: str
    context: int
    score: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    nll_difference: float | None = None
    nll_interval: tuple[float, float] | None = None
    interval_of: str = "texts"
    kl: float | None = None
    items: int = 0
    texts: int = 0
    counts: bool = True
    retrieval: bool = False
    device_bytes: int | float | None = None
    hot_bytes: int | float | None = None
    by_label: dict[str, dict[str, float]] = {}
    note: str = ""

    @property
    def few_texts(self) -> bool:
        """Whether the intervals are about these texts alone: there were too few to speak about others."""
        return self.interval_of == "items"

    @property
    def method(self) -> tuple[str, float]:
        """Who it is: policy and budget."""
        return self.policy, self.budget

    @property
    def fast_bytes(self) -> float | None:
        """On the compute device and in DRAM together."""
        return None if self.device_bytes is None or self.hot_bytes is None else self.device_bytes + self.hot_bytes


class Together(_Read):
    policy: str
    budget: float
    items: int
    texts: int
    difference: float
    interval: tuple[float, float]
    nll_difference: float
    nll_interval: tuple[float, float] | None = None


class Evaluation(Report):
    """eval-small.json and other results of hillinfer eval."""

    kind: Literal["hillinfer-eval"]
    version: Literal[1]
    seed: int | None = None
    rows: list[EvalRow]
    retrieval: list[Together] = []


class Validated(_Read):
    policy: str
    context: int
    hot_share: float | None = None
    measured_ms: float
    simulated_ms: float
    error: float


class LeftOut(_Read):
    """A setting that cannot be had on the machine, and why."""

    policy: str
    context: int
    hot_share: float
    why: str


class Simulated(Report):
    """simulate.json."""

    kind: Literal["hillinfer-simulate"]
    version: Literal[1]
    rows: list[Validated]
    left_out: list[LeftOut] = []


class Statement(_Read):
    says: str
    low: float | None
    high: float | None
    unit: str
    mark: str = ""


class Stated(_Read):
    figure: str
    what: str
    paper: Statement | None
    ours: float
    unit: str
    difference: float | None
    reproduced: bool | None
    why: str


class Curve(_Read):
    label: str
    x: list[float]
    y: list[float | None]
    group: str = ""


class PaperFigure(_Read):
    figure: str
    title: str
    x: str
    y: str
    series: list[Curve]
    notes: list[str] = []
    ticks: list[str] = []


class Paper(Report):
    """simulate-paper.json."""

    kind: Literal["hillinfer-simulate-paper"]
    version: Literal[1]
    close: float = 0.15
    rows: list[Stated]
    figures: list[PaperFigure]


class FitRow(_Read):
    method: str
    context: int
    batch: int
    ms_per_step: float | None
    where: str = ""
    why_not: str = ""


class Fits(Report):
    """simulate-fit.json."""

    kind: Literal["hillinfer-simulate-fit"]
    version: Literal[1]
    hardware: str
    rows: list[FitRow]


class MemoryRow(_Read):
    case: str
    kv_mib: float | None = None
    budgets_mib: float | None = None
    grew_mib: tuple[float, float] | None = None
    over_mib: tuple[float, float]


class Memory(Report):
    """memory.json: resident memory beside the budgets, as the test of memory budgets prints it; kept by hand."""

    rows: list[MemoryRow]


class LocalityRow(_Read):
    text: str
    hot_hit_rate: float


class Locality(Report):
    """locality.json: hit rates by text, of several runs of ``bench decode``; kept by hand."""

    rows: list[LocalityRow]


class Event(_Read):
    ph: str
    name: str
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    args: dict[str, Any] = {}


class Timeline(Report):
    """A Chrome trace: what ran when."""

    traceEvents: list[Event]  # the format's own name
