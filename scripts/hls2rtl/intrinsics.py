"""LLVM's intrinsic functions on integers, as operations of the graph."""

from __future__ import annotations

from .graph import Graph, Node

# Marks for the optimiser: nothing is computed.
NO_HARDWARE = ("llvm.lifetime.", "llvm.dbg.", "llvm.assume", "llvm.experimental.noalias", "llvm.donothing")


def intrinsic(g: Graph, name: str, args: list[Node]) -> Node | None:
    """The value of llvm.NAME.iN(args), or None if it is not known here."""
    a, b = args[0], args[-1]
    match name:
        case "umin" | "smin":
            return g.select(g.compare("ult" if name == "umin" else "slt", a, b), a, b)
        case "umax" | "smax":
            return g.select(g.compare("ult" if name == "umax" else "slt", a, b), b, a)
        case "abs":
            zero = g.const(a.width, 0)
            return g.select(g.compare("slt", a, zero), g.sub(zero, a), a)
        case "usub.sat":
            return g.select(g.compare("ult", a, b), g.const(a.width, 0), g.sub(a, b))
        case "fshl" | "fshr" if b.is_const():
            return _funnel(g, name, a, args[1], b.value % a.width)
        case "bswap":
            return g.concat([g.bits(a, low, 8) for low in range(0, a.width, 8)])
        case "bitreverse":
            return g.concat([g.bits(a, low, 1) for low in range(a.width)])
        case "ctpop":
            return _count_ones(g, a)
    return None


def _funnel(g: Graph, name: str, high: Node, low: Node, by: int) -> Node:
    """Both words side by side, shifted; a rotation if they are the same."""
    if by == 0:
        return high if name == "fshl" else low
    return g.bits(g.concat([high, low]), high.width - by if name == "fshl" else by, high.width)


def _count_ones(g: Graph, a: Node) -> Node:
    sums = [g.zext(g.bits(a, low, 1), a.width) for low in range(a.width)]
    while len(sums) > 1:
        pairs = [sums[n : n + 2] for n in range(0, len(sums), 2)]
        sums = [g.add(pair[0], pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return sums[0]
