"""Rules that are checked before optimisation, while the program still looks as it was written.

By now a process has everything that it calls inside it; a call that is left calls itself, or something unknown.
"""

from __future__ import annotations

from typing import Literal

from . import ir
from .errors import RuleError
from .pragmas import Pragmas

_FLOATS = ("half", "bfloat", "float", "double", "x86_fp80", "fp128")


def check(module: ir.Module, top: str, processes: list[str], pragmas: Pragmas) -> None:
    """Raises RuleError for the first rule that the top or one of its processes breaks."""
    function = module.functions[top]
    if top not in pragmas.dataflow:
        raise RuleError("top", f"{top} has no #pragma HLS DATAFLOW", function.location)
    for symbol in processes:
        process = module.functions[symbol]
        if not process.defined:
            raise RuleError("call", f"{process.short_name} is not defined in the source", function.location)
        _check_signature(process)
        for instruction in process.instructions():
            _check_call(module, instruction, process)
            _check_instruction(instruction, process)
    for instruction in function.instructions():
        _check_instruction(instruction, function)


def stream_uses(function: ir.Function) -> dict[str, dict[Literal["read", "write"], int]]:
    """What the source does with each stream of a process: parameter -> read or write -> width."""
    uses: dict[str, dict[Literal["read", "write"], int]] = {}
    for i in function.instructions():
        if i.opcode in ("load", "store") and i.volatile:
            pointer = i.operands[0 if i.opcode == "load" else 1]
            width = i.width if i.opcode == "load" else getattr(i.operands[0], "width", None)
            for argument in _origins(pointer):
                uses.setdefault(argument.name, {})["read" if i.opcode == "load" else "write"] = width or 0
    return uses


def _origins(pointer: ir.Value) -> set[ir.Argument]:
    found: set[ir.Argument] = set()
    seen: set[ir.Value] = set()
    work = [pointer]
    while work:
        value = work.pop()
        if isinstance(value, ir.Argument):
            found.add(value)
        elif isinstance(value, ir.Instruction) and value not in seen:
            seen.add(value)
            work += value.operands[:1] if value.opcode == "getelementptr" else value.operands
    return found


def _check_call(module: ir.Module, i: ir.Instruction, function: ir.Function) -> None:
    if i.opcode not in ("call", "invoke") or i.callee.startswith("llvm."):
        return
    at = i.location or function.location
    called = module.functions.get(i.callee)
    if called is not None and called.defined:
        raise RuleError("recursion", f"{called.short_name} calls itself", called.location or at)
    raise RuleError("call", f"{ir.short_name(i.callee) or 'a function pointer'} is not defined in the source", at)


def _check_instruction(i: ir.Instruction, function: ir.Function) -> None:
    at = i.location or function.location
    types = [i.type, *(o.type for o in i.operands if isinstance(o, ir.Constant))]
    if any(type_text in _FLOATS for type_text in types):
        raise RuleError("float", "a floating-point value: use integers, or bits of integers", at)
    if i.opcode in ("ptrtoint", "inttoptr"):
        raise RuleError("pointer", "a pointer is cast to or from a number", at)
    for operand in i.operands:
        if isinstance(operand, ir.Global) and not operand.constant:
            static = operand.name.startswith("_ZZ")
            what = "static: its value would outlive the launch" if static else "global"
            raise RuleError("global", f"{ir.short_name(operand.name)} is {what}", at)


def _check_signature(function: ir.Function) -> None:
    if function.returns != "void":
        raise RuleError("process", f"{function.short_name} returns a value: write it to a stream", function.location)
    for argument in function.arguments:
        if argument.by_value or (argument.type != "ptr" and argument.width is None):
            what = "a struct" if argument.by_value else argument.type
            message = f"{function.short_name} takes {argument.name or 'an argument'}, {what}: pass streams and integers"
            raise RuleError("process", message, function.location)
