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
        case "uadd.sat":
            total = g.add(g.zext(a, a.width + 1), g.zext(b, a.width + 1))
            return g.select(g.bits(total, a.width, 1), g.const(a.width, -1), g.bits(total, 0, a.width))
        case "fshl" | "fshr" if b.is_const() or a.width & (a.width - 1) == 0:
            return _funnel(g, name, a, args[1], b)
        case "bswap":
            return g.concat([g.bits(a, low, 8) for low in range(0, a.width, 8)])
        case "bitreverse":
            return g.concat([g.bits(a, low, 1) for low in range(a.width)])
        case "ctpop":
            return _count_ones(g, a)
    return None


def _funnel(g: Graph, name: str, high: Node, low: Node, by: Node) -> Node:
    """Both words side by side, shifted by less than a word; a rotation if they are the same."""
    width, both = high.width, g.concat([high, low])
    amount = g.const(2 * width, by.value % width) if by.is_const() else g.zext(_low_bits(g, by, width), 2 * width)
    if name == "fshl":
        return g.bits(g.shift("shl", both, amount), width, width)
    return g.bits(g.shift("lshr", both, amount), 0, width)


def _low_bits(g: Graph, by: Node, width: int) -> Node:
    """An amount modulo a width that is a power of two."""
    return g.bits(by, 0, max(1, (width - 1).bit_length()))


def _count_ones(g: Graph, a: Node) -> Node:
    sums = [g.zext(g.bits(a, low, 1), a.width) for low in range(a.width)]
    while len(sums) > 1:
        pairs = [sums[n : n + 2] for n in range(0, len(sums), 2)]
        sums = [g.add(pair[0], pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return sums[0]
