"""A model of delay for UltraScale+ (speed grade -2): how long each operation takes, in ns, wires included.

Estimates, for the schedule only: a stage is filled up to its share of the clock period. No tool has confirmed them.
"""

from __future__ import annotations

import math

from .graph import Node

DEFAULT_CLOCK_NS = 3.33  # 300 MHz

LUT = 0.25  # one level of logic with its wire
DSP = 1.9  # a product that fits one DSP slice
BLOCK_RAM = 1.35  # clock to data, and a choice between that and what was written a clock before
SHARE = 0.75  # of the clock period that logic may fill, as in Vitis, which keeps 27 % for uncertainty

_WIRING = {"const", "argument", "concat", "replicate", "bits", "state", "not"}


def delay(node: Node) -> float:
    """The delay from the node's latest argument to its value. Wiring and inverters are free."""
    if node.op in _WIRING:
        return 0.0
    if node.op in ("and", "or", "xor"):
        return 0.0 if node.args[1].op == "const" else 0.2
    if node.op == "select":
        return 0.35
    if node.op in ("add", "sub"):
        return 0.45 + 0.015 * _varying(node)
    if node.op == "eq":
        return LUT * math.ceil(math.log(max(2, _varying(node.args[0]) / 3), 6) + 1)
    if node.op in ("ult", "ule", "slt", "sle"):
        return 0.4 + 0.012 * max(_varying(arg) for arg in node.args)
    if node.op in ("shl", "lshr", "ashr"):
        return 0.3 * math.ceil(math.log2(max(2, min(_varying(node), 1 << node.args[1].ones.bit_length()))))
    if node.op == "mul":
        return DSP
    if node.op == "load":
        return 0.8
    return 0.0  # read: out of a FIFO's register


def _varying(node: Node) -> int:
    return max(1, node.ones.bit_count())
