"""Methods by name, with the settings their papers give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hillinfer.errors import SettingError, nearest
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.full import Full
from hillinfer.simulation.methods.hillinfer import HillInfer
from hillinfer.simulation.methods.kept import Kept
from hillinfer.simulation.methods.retrieval import Retrieval

METHODS: Mapping[str, Callable[[], Method]] = {
    "hillinfer": HillInfer,
    "hillinfer-no-hkm": lambda: HillInfer(hkm=False),
    "hillinfer-no-app": lambda: HillInfer(ahead=False),
    "full-device": lambda: Full("device"),
    "full-dram": lambda: Full("dram"),
    "full-drive": lambda: Full("drive"),
    "h2o": lambda: Kept(budget=0.2, policy="h2o"),
    "streaming-llm": Kept,
    "h2o-drive": lambda: Kept(budget=0.2, tier="drive", policy="h2o"),
    "quest": lambda: Retrieval(index=2 / 16, chunk=16, policy="quest"),
    "leoam": lambda: Retrieval(index=2 / 32, chunk=32, policy="leoam"),
    "infinigen": lambda: Retrieval(index=0.2, whole=2, ahead=True, policy="infinigen"),
}


def named(name: str) -> Method:
    """A method by name; SettingError for one that is not known, with the nearest."""
    if name not in METHODS:
        raise SettingError(f"there is no method {name!r}{nearest(name, list(METHODS))}")
    return METHODS[name]()
