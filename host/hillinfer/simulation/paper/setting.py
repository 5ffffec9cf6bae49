"""The paper's setting: batches of 1920 prompt and 128 new tokens, on its box, by every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from hillinfer.calibration.rates import Load, Rates, balanced_share
from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.full import Full
from hillinfer.simulation.methods.hillinfer import HillInfer
from hillinfer.simulation.methods.kept import Kept
from hillinfer.simulation.methods.registry import named as method_named
from hillinfer.simulation.paper.behaviour import read
from hillinfer.simulation.paper.runs import STEPS, TOKENS, Run, recorded
from hillinfer.simulation.prefill import prefill_seconds
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import Shape
from hillinfer.simulation.trace import LayerStep, Trace

MODELS = ("opt-6.7b", "llama-13b", "longchat-7b", "qwen-7b")
BATCHES = (1, 4, 7, 10)
EXTREME = (20, 25)
OURS = "hillinfer"
RIVALS: Mapping[str, str] = {
    "h2o-drive": "H2O, 20 % kept, on the drive",
    "leoam": "chunks of 32 by bounds (LeoAM-like)",
    "quest": "pages of 16 by bounds (Quest-like)",
    "infinigen": "prefetch-based (InfiniGen-like)",
    "full-drive": "full offload to the drive",
}
"""What ours is held against, all with the KV on the drive: our sources do not name the paper's baselines."""

SAMPLE = 16
"""Steps that stand for a run's 128: on average within 2 % of all, which as many evenly spread ones are not."""

EQUAL_MASS: Mapping[str, float] = {"h2o-drive": 0.166, "leoam": 0.229, "infinigen": 0.029}
"""Shares of the tokens with which rivals capture as much of the attention as HillInfer at 10 %: measured by hillinfer
bench big for LongChat-7B's shape at 8,192 tokens (docs/measured/big.json)."""


def sampled(trace: Trace, count: int = SAMPLE) -> Trace:
    """``count`` of the trace's steps, in their order, that take as long on average as all of them.

    Steps are sorted by the rows they read, by which their times differ, and cut into as many equal parts: the middle
    one of each is taken. Real steps, as time is not linear in the work: of two paths a layer waits for the slower one,
    and a step that does in each layer what is done on average never waits for what only some steps read.
    """
    steps = len(trace.steps)
    if steps <= count:
        return trace
    reads = [sum(work.read_rows for work in step) for step in trace.steps]
    by_reads = sorted(range(steps), key=reads.__getitem__)
    taken = sorted(by_reads[(2 * part + 1) * steps // (2 * count)] for part in range(count))
    return replace(trace, steps=[trace.steps[step] for step in taken], positions=None)


def typical(trace: Trace) -> Trace:
    """One step that does, layer by layer, what the trace's steps do on average."""
    count = len(trace.steps)
    fields = LayerStep.__dataclass_fields__
    layers = [
        LayerStep(**{name: round(sum(getattr(step[layer], name) for step in trace.steps) / count) for name in fields})
        for layer in range(trace.layers)
    ]
    return replace(trace, steps=[layers], positions=None)


def rates(hardware: Hardware, shape: Shape, method: HillInfer) -> Rates:
    """The four speeds of the paper's formula, in bytes of KV rows per second."""
    card, pcie = hardware.smartssd, hardware.pcie
    if card is None or pcie is None or hardware.gpu is None:
        raise SettingError(f"the box {hardware.name} has no SmartSSD or no GPU: there is no balance between two paths")
    per_key = shape.row_bytes / (shape.key_elements * method.key_bytes)
    scan = min(card.scan, card.memory_bandwidth, *([card.p2p, card.drive.read] if method.streamed else []))
    read = min(card.drive.read, card.drive.iops * shape.row_bytes)
    return Rates(
        min(hardware.cpu.score, hardware.dram.bandwidth) * per_key, scan * card.cards * per_key, float(pcie.bandwidth),
        read * card.cards,
    )  # fmt: skip


def load(shape: Shape, trace: Trace) -> Load:
    """What a layer's step has to do on average, in bytes of rows."""
    works = [work for step in trace.steps for work in step]
    each = shape.row_bytes / len(works)
    return Load(
        each * sum(work.tokens for work in works),
        each * sum(work.hot_rows for work in works),
        each * sum(work.cold_rows for work in works),
    )


def balanced(hardware: Hardware, shape: Shape, trace: Trace, method: HillInfer) -> HillInfer:
    """The method with the split at which, by the formula, both paths end together."""
    share = balanced_share(rates(hardware, shape, method), load(shape, trace), two_hop=method.two_hop)
    return replace(method, host_share=share)


def ours(hardware: Hardware, shape: Shape, trace: Trace) -> HillInfer:
    """HillInfer as the product runs it: an INT8 copy of the keys in the card's memory, or FP16 keys from its drive.

    The copy is of what the card scores; where that is more than its memory, keys are streamed.
    """
    card = hardware.smartssd
    method = balanced(hardware, shape, trace, HillInfer(hot_share=float(trace.settings.get("hot", 0.2))))
    tokens = trace.steps[-1][0].tokens
    copy = tokens * shape.layers * shape.key_elements * (1 - (method.host_share or 0))
    if card is not None and copy > card.memory * card.cards:
        streaming = replace(method, key_bytes=shape.kv_bytes, streamed=True)
        return balanced(hardware, shape, trace, streaming)
    return method


@dataclass(frozen=True)
class Generation:
    """Seconds of a batch's answers: the prompt, and a step."""

    prompt: float
    step: float

    @property
    def seconds(self) -> float:
        return self.prompt + STEPS * self.step


def generation(hardware: Hardware, shape: Shape, name: str, trace: Trace, method: Method | None = None) -> Generation:
    """A batch of 1920 + 128 tokens by a method's name, ``method`` in its place where one is given.

    trace   the batch's steps, or some that stand for them
    """
    if method is None:
        method = ours(hardware, shape, trace) if name == OURS else method_named(name)
    step = simulate(hardware, shape, method, trace).mean_step
    kept = (method.budget or 1.0) if isinstance(method, Kept) else 1.0
    kv = TOKENS * trace.sequences * shape.token_bytes * kept
    on_drive = isinstance(method, HillInfer) or getattr(method, "tier", "drive") == "drive"
    in_dram = isinstance(method, Full | Kept) and method.tier == "dram"
    on_device = kv if isinstance(method, Full | Kept) and method.tier == "device" else 0.0
    prompt = prefill_seconds(
        hardware, shape, tokens=TOKENS, sequences=trace.sequences, on_device=on_device,
        to_dram=kv if in_dram else 0.0, to_drive=kv if on_drive else 0.0,
    )  # fmt: skip
    return Generation(prompt, step)


@cache
def work(run: Run, shape: Shape, batch: int, tokens: int = TOKENS) -> Trace:
    """A recorded run as it would have been for a shape, a batch and a context: a sample of its steps, for HillInfer."""
    return sampled(recorded(run).scaled(shape, sequences=batch, tokens=_first(run, tokens)))


@cache
def average_work(run: Run, shape: Shape, batch: int, tokens: int = TOKENS) -> Trace:
    """The same for methods that do not go by where rows lie: one average step, as theirs are alike."""
    return typical(recorded(run).scaled(shape, sequences=batch, tokens=_first(run, tokens)))


def _first(run: Run, tokens: int) -> int:
    """Where a run begins, so that its steps, if there are more, see the same context on average."""
    return max(1, tokens - (run.steps - STEPS) // 2)


def work_of(name: str, run: Run, shape: Shape, batch: int) -> Trace:
    """What a method by name is timed on, in the paper's context."""
    return (work if name == OURS else average_work)(run, shape, batch)


def thrashing(trace: Trace, run: Run) -> Trace:
    """The run without HKM: what each step attends to is in DRAM, and what was not there a step ago was read for it.

    So every row that enters the selection is cold and moves. The share is counted in the recorded run (figure 4).
    """
    moved = read(recorded(run)).moved_by_score

    def placed(work: LayerStep) -> LayerStep:
        cold = round(work.attended * moved)
        hot = work.attended - cold
        return replace(work, hot_rows=hot, cold_rows=cold, cold_requests=cold, read_rows=cold, moved_rows=cold)

    return replace(trace, steps=[[placed(work) for work in step] for step in trace.steps])
