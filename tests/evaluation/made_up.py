"""Results without a model: as many items as asked for, with scores that can be told beforehand."""

from __future__ import annotations

from hillinfer.evaluation.results import ItemResult, Results, Run
from hillinfer.evaluation.rows import rows_of, together


def run(policy: str, budget: float, score: float | None, nll: float) -> Run:
    return Run(
        policy=policy,
        budget=budget,
        score=score,
        nll=nll,
        kl=0.0 if policy == "full" else 0.1,
        said="x",
        device_bytes=int(1000 * budget),
        hot_bytes=10,
        cold_bytes=0,
    )


def made_up(
    scores: list[float], full: list[float] | None = None, *, prompts: str = "p", model: str = "made up"
) -> Results:
    """One policy's scores on needles at two contexts, beside the full cache's (1 unless said)."""
    items = [
        ItemResult(
            task="needle",
            context=context,
            identity=str(number),
            prompt=f"{prompts}{number}",
            labels={"depth": number / len(scores)},
            cut=0,
            runs=[
                run("full", 1.0, (full or [1.0] * len(scores))[number], 0.5),
                run("hillinfer", 0.1, score, 0.5 + (1 - score) * 2),
            ],
        )
        for context in (1000, 2000)
        for number, score in enumerate(scores)
    ]
    undefined: dict[tuple[str, float, str, int], str] = {("heterocache", 0.5, "needle", 1000): "it has no profile"}
    rows = rows_of(items, undefined, {"needle": True}, 0)
    return Results(
        model=model,
        seed=0,
        versions={"hillinfer": "0"},
        settings={},
        rows=rows,
        retrieval=together(rows, items, 0),
        items=items,
    )
