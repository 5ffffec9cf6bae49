"""One operation of the graph as a SystemVerilog expression."""

from __future__ import annotations

from collections.abc import Callable

from ..graph import Node

_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "eq": "==", "ult": "<", "ule": "<="}


def constant(width: int, value: int) -> str:
    return f"{width}'d{value}" if value < 10 else f"{width}'h{value:x}"


def expression(node: Node, reference: Callable[[Node], str]) -> str:
    """The value of a pure node, its arguments being named by ``reference``."""
    args = [reference(arg) for arg in (node.args[:1] if node.op in ("shl", "lshr", "ashr") else node.args)]
    match node.op:
        case "add" | "sub" | "and" | "or" | "xor" | "eq" | "ult" | "ule":
            return f"{args[0]} {_INFIX[node.op]} {args[1]}"
        case "slt":
            return f"$signed({args[0]}) < $signed({args[1]})"
        case "sle":
            return f"$signed({args[0]}) <= $signed({args[1]})"
        case "mul":
            return _product(node, args)
        case "not":
            return f"~{args[0]}"
        case "shl":
            return f"{args[0]} << {_amount(node.args[1], reference)}"
        case "lshr":
            return f"{args[0]} >> {_amount(node.args[1], reference)}"
        case "ashr":
            return f"$signed({args[0]}) >>> {_amount(node.args[1], reference)}"
        case "select":
            return f"{args[0]} ? {args[1]} : {args[2]}"
        case "concat":
            return f"{{{', '.join(args)}}}"
        case "replicate":
            return f"{{{node.width}{{{args[0]}}}}}"
        case "bits":
            high = node.value + node.width - 1
            return f"{args[0]}[{high}:{node.value}]" if node.width > 1 else f"{args[0]}[{high}]"
    raise AssertionError(node.op)


def _product(node: Node, args: list[str]) -> str:
    """Factors keep their own widths, so that synthesis sees how small the multiplier is."""
    if node.value == 0:
        return f"{args[0]} * {args[1]}"
    signed = [f"$signed({arg})" if node.value >> n & 1 else f"$signed({{1'b0, {arg}}})" for n, arg in enumerate(args)]
    return f"{signed[0]} * {signed[1]}"


def _amount(amount: Node, reference: Callable[[Node], str]) -> str:
    """A shift's amount without leading zeros."""
    if amount.op == "concat" and amount.args[0].is_const(0):
        parts = [reference(part) for part in amount.args[1:]]
        return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"
    return reference(amount)
