"""The chapters, in the page's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hillinfer.figures import (
    ablation,
    answers,
    balance,
    big,
    copies,
    decode,
    differences,
    fits,
    growth,
    io,
    kernel,
    needles,
    paper,
    policies,
    reports,
    scorer,
    summary,
    tiers,
    timeline,
    tokens,
    validation,
)
from hillinfer.page.chapter import Chapter
from hillinfer.page.sources import Source, report
from hillinfer.simulation.trace import Trace

SHORT, SPEED, QUALITY, RUN, KERNEL, MODEL = (
    "In short",
    "Speed",
    "Quality",
    "Inside a run",
    "The kernel",
    "The timing model",
)


def _recording(path: Path) -> Trace:
    from hillinfer.simulation.trace_file import load

    return load(path)


_RECORDING = Source("trace.npz", "hillinfer simulate record", _recording)
_DECODE = report("decode.json", "hillinfer bench decode", reports.Decode)


CHAPTERS: Sequence[Chapter] = (
    Chapter(
        SHORT,
        "summary",
        "Against the goals",
        "The figures the project holds itself to, each a ratio within its own benchmark's run. What misses its goal is "
        "shown as well as what meets it.",
        report("bench.json", "make bench", reports.Bench),
        lambda found: [summary.picture(found)],
    ),
    Chapter(
        SPEED,
        "decode",
        "Decoding",
        "A real model decodes; every cache holds the same context and takes blocks of steps in turn, in one run.",
        _DECODE,
        lambda found: [decode.picture(found)],
    ),
    Chapter(
        SPEED,
        "prefill",
        "Reading a prompt",
        "How long a prompt takes before the first token, beside the stock cache.",
        _DECODE,
        tables=lambda found: [decode.prefill_table(found)] if found.prefill else [],
    ),
    Chapter(
        SPEED,
        "growth",
        "As the context grows",
        "What a context adds to the cost of a token, and with which exponent it grows.",
        report("growth.json", "hillinfer bench growth", reports.Growth),
        lambda found: [growth.picture(found)],
    ),
    Chapter(
        SPEED,
        "big",
        "Larger than memory",
        "Decoding with most of the KV cache on disk: every method within one budget of DRAM, on one store and one I/O "
        "engine, baselines where they capture as much of the attention as HillInfer does.",
        report("big.json", "hillinfer bench big", reports.Big),
        lambda found: [big.picture(found)],
    ),
    Chapter(
        SPEED,
        "scorer",
        "The scorer",
        "How fast the host ranks keys, beside reading the same memory in the same run.",
        report("scorer.json", "hillinfer bench scorer", reports.Scorer),
        lambda found: [scorer.picture(found)],
    ),
    Chapter(
        SPEED,
        "balance",
        "Host and device in balance",
        "The scoring is shared out so that host and storage device end together.",
        report("balance.json", "hillinfer bench balance", reports.Balance),
        lambda found: [balance.picture(found)] if found.points else [],
        lambda found: [balance.figures_table(found)],
    ),
    Chapter(
        SPEED,
        "ablation",
        "What each part adds",
        "Near-data scoring alone, then placement by history, then the pipeline.",
        report("ablation.json", "hillinfer bench ablation", reports.Ablation),
        lambda found: [ablation.picture(found)],
    ),
    Chapter(
        SPEED,
        "io",
        "The disk",
        "Random reads of rows, through what decoding reads with.",
        report("io.json", "hillinfer bench io", reports.Io),
        lambda found: [io.picture(found)],
    ),
    Chapter(
        QUALITY,
        "ranking",
        "Rankings",
        "How far the next token's distribution is from the full cache's, by the way keys are ranked.",
        _DECODE,
        tables=lambda found: [decode.quality_table(found)] if found.quality else [],
    ),
    Chapter(
        QUALITY,
        "policies",
        "Quality against memory",
        "Every policy at equal budgets on the same prompts. Lower and further to the left is better; dotted lines are "
        "policies that drop tokens for good.",
        report("policies.json", "make bench-policies", reports.Policies),
        lambda found: [policies.picture(found)],
    ),
    Chapter(
        QUALITY,
        "evaluation",
        "Tasks",
        "Scores beside the full cache on the same items, with 95 % intervals of the paired difference. Tasks on "
        "which the full cache itself scores under one half are shown but don't count.",
        report("eval-small.json", "make eval-small", reports.Evaluation),
        lambda found: [*differences.pictures(found), *(each for each in [answers.picture(found)] if each is not None)],
        differences.tables,
    ),
    Chapter(
        QUALITY,
        "needles",
        "Needle in a haystack",
        "How often a sentence hidden in a text is found, by the text's length and how deep in it the sentence stands.",
        report("eval-small.json", "make eval-small", reports.Evaluation),
        needles.pictures,
    ),
    Chapter(
        QUALITY,
        "second-model",
        "Tasks, a second model",
        "The same beside another model's full cache.",
        report(
            "eval-gemma.json",
            "hillinfer eval --model gemma3 --output build/reports/eval-gemma.json",
            reports.Evaluation,
        ),
        lambda found: [
            replace(each, name=f"{each.name}-second")
            for each in [*differences.pictures(found), *needles.pictures(found)]
        ],
        differences.tables,
    ),
    Chapter(
        QUALITY,
        "copies",
        "Scoring copies",
        "How small a copy of the keys can be and still rank well.",
        report("copies.json", "hillinfer bench copies", reports.Copies),
        lambda found: [copies.picture(found)],
    ),
    Chapter(
        RUN,
        "tiers",
        "Tiers and hit rate",
        "A recorded run of a real model: where the tokens it attends to were found, step by step.",
        _RECORDING,
        lambda found: [tiers.picture(found)],
    ),
    Chapter(
        RUN,
        "tokens",
        "Tokens",
        "The same run token by token: what is pinned for being recent, kept hot for being selected often, left cold, "
        "and what each step selects.",
        _RECORDING,
        lambda found: [each for each in [tokens.picture(found)] if each is not None],
    ),
    Chapter(
        RUN,
        "timeline",
        "What ran when",
        "Scoring on host and device, reads and attention, as they overlapped.",
        report("timeline.json", "hillinfer generate --trace build/reports/timeline.json", reports.Timeline),
        lambda found: [timeline.picture(found)],
    ),
    Chapter(
        KERNEL,
        "kernel",
        "Cycles and size",
        "The FPGA's kernel in RTL simulation, with a memory that never waits. Nothing here was measured on a card.",
        report("kernel.json", "make bench-kernel", reports.Kernel),
        lambda found: [kernel.picture(found)],
        lambda found: [table for table in [kernel.size_table(found)] if table is not None],
    ),
    Chapter(
        MODEL,
        "validation",
        "Checked where it runs",
        "Simulated steps beside measured ones. No parameter is fitted to the answer.",
        report("simulate.json", "hillinfer simulate validate", reports.Simulated),
        lambda found: [validation.picture(found)],
    ),
    Chapter(
        MODEL,
        "simulated-timeline",
        "What would run when",
        "The same for a box that the model knows: which of its parts work at the same time, and which wait.",
        report(
            "timeline-simulated.json",
            "hillinfer simulate run --method hillinfer --steps 4 --trace build/reports/timeline-simulated.json",
            reports.Timeline,
        ),
        lambda found: [timeline.picture(found, "timeline-simulated", "What would run when, on the paper's box")],
    ),
    Chapter(
        MODEL,
        "paper",
        "The papers, side by side",
        "What the papers state, what the timing model gives for the same box, and where they differ, why.",
        report("simulate-paper.json", "hillinfer simulate paper", reports.Paper),
        paper.pictures,
        lambda found: [paper.statements(found), paper.counts(found), *paper.tables(found)],
    ),
    Chapter(
        MODEL,
        "fits",
        "Before buying",
        "Which context fits a box, where its KV cache would lie, and how long a step would take.",
        report("simulate-fit.json", "hillinfer simulate fit", reports.Fits),
        lambda found: [fits.picture(found)],
    ),
)
