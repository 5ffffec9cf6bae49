"""What the timing model is held against: policies, contexts and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hillinfer.policies import H2O, HillInfer, InfiniGen, LeoAM, Policy, Quest, StreamingLLM
from hillinfer.simulation import methods
from hillinfer.simulation.measuring import here
from hillinfer.simulation.measuring.kept import BUDGET
from hillinfer.simulation.methods import Method
from hillinfer.simulation.methods.hillinfer import HillInfer as HillInferMethod
from hillinfer.simulation.methods.kept import Kept

DROPPING = (StreamingLLM.name, H2O.name)
"""Policies that keep a fifth of the tokens and drop the others."""
INDEXED = tuple(kind.name for kind in here.INDEXED)
"""Policies that find a fifth of the tokens by an index."""
KINDS: Mapping[str, type[StreamingLLM | H2O | Quest | LeoAM | InfiniGen]] = {
    kind.name: kind for kind in (StreamingLLM, H2O, *here.INDEXED)
}


@dataclass(frozen=True)
class Setting:
    """A way to decode.

    method     as the timing model names it: "full-device" for the stock cache, "hillinfer", or a policy's name
    alpha      share of the tokens attended, of hillinfer; hot_share: of the KV, in DRAM
    lookahead  layers that are read ahead, of hillinfer
    """

    context: int
    method: str
    alpha: float = 1.0
    hot_share: float = 1.0
    lookahead: int = 0

    @property
    def policy(self) -> str:
        """As a row names it."""
        ahead = f", lookahead {self.lookahead}" if self.lookahead else ""
        return {"full-device": "full", "hillinfer": f"hillinfer α={self.alpha:g}{ahead}"}.get(self.method, self.method)

    @property
    def hot(self) -> str:
        """As a budget is written: all that is cached has room, and all of an index."""
        whole = here.ALL_AND_INDEX if self.method in INDEXED else here.ALL
        return whole if self.hot_share >= 1 else f"{self.hot_share:.2%}"

    def opened(self) -> Policy:
        """What the engine runs; not of the stock cache."""
        if self.method == "hillinfer":
            return HillInfer(alpha=self.alpha)
        return KINDS[self.method](budget=BUDGET)

    def simulated(self) -> Method:
        """What the timing model runs."""
        if self.method in DROPPING:
            return Kept(policy="" if self.method == StreamingLLM.name else self.method)
        if self.method == "hillinfer":
            return HillInferMethod(lookahead=self.lookahead > 0)
        return methods.named(self.method)


def settings_of(
    contexts: Sequence[int],
    alphas: Sequence[float],
    hot_shares: Sequence[float],
    policies: Sequence[str] = (*DROPPING, *INDEXED),
) -> list[Setting]:
    """At each context the stock cache, every policy, and every combination of hillinfer's: α = 1 and reading ahead too.

    Pools go with every policy that has tiers; reading ahead with those that leave something to be read.
    """
    scored = sorted(alpha for alpha in alphas if alpha < 1)
    middle = scored[len(scored) // 2 : len(scored) // 2 + 1]
    return [
        setting
        for context in contexts
        for setting in [
            Setting(context, "full-device"),
            *(Setting(context, name) for name in policies if name in DROPPING),
            *(
                Setting(context, "hillinfer", alpha, hot)
                for alpha in dict.fromkeys((*alphas, *([1.0] if alphas else [])))
                for hot in hot_shares
            ),
            *(
                Setting(context, "hillinfer", alpha, hot, lookahead=1)
                for alpha in middle
                for hot in hot_shares
                if hot < 1
            ),
            *(Setting(context, name, hot_share=hot) for name in policies if name in INDEXED for hot in hot_shares),
        ]
    ]
