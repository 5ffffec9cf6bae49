"""Methods of decoding, as the timing model runs them: one file each, behind one interface."""

from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.registry import METHODS, named

__all__ = ["METHODS", "Method", "named"]
