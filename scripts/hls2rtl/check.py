"""Rules that are checked before optimisation, while the program still looks as it was written."""

from __future__ import annotations

from . import ir
from .design import is_constructor
from .errors import RuleError
from .pragmas import Pragmas

_FLOATS = ("half", "bfloat", "float", "double", "x86_fp80", "fp128")


def check(module: ir.Module, top: str, processes: list[str], pragmas: Pragmas) -> None:
    """Raises RuleError for the first rule that a function reachable from the top breaks."""
    function = module.functions[top]
    if top not in pragmas.dataflow:
        raise RuleError("top", f"{top} has no #pragma HLS DATAFLOW", function.location)
    _check_calls(module, function, [])
    for symbol in processes:
        if symbol in module.functions and module.functions[symbol].blocks:
            _check_signature(module.functions[symbol])
    _check_streams(function, set(processes))


def _check_calls(module: ir.Module, function: ir.Function, path: list[str]) -> None:
    """Depth first through the calls, checking each body."""
    if function.name in path:
        raise RuleError("recursion", f"{function.short_name} calls itself", function.location)
    for instruction in function.instructions():
        _check_instruction(instruction, function)
        if instruction.opcode in ("call", "invoke"):
            called = module.functions.get(instruction.callee)
            if called is not None and called.blocks:
                _check_calls(module, called, [*path, function.name])
            elif not instruction.callee.startswith("llvm."):
                name = ir.short_name(instruction.callee) or "a function pointer"
                at = instruction.location or function.location
                raise RuleError("call", f"{name} is not defined in the source", at)


def _check_instruction(i: ir.Instruction, function: ir.Function) -> None:
    at = i.location or function.location
    constants = [o.text for o in i.operands if isinstance(o, ir.Constant)]
    if i.type in _FLOATS or any(text.startswith(_FLOATS) for text in constants):
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
        if argument.type != "ptr" and argument.width is None:
            message = f"{function.short_name} takes {argument.name or 'something'} of type {argument.type}"
            raise RuleError("process", message, function.location)
        if argument.by_value:
            message = f"{function.short_name} takes {argument.name or 'a struct'} by value: pass integers"
            raise RuleError("process", message, function.location)


def _check_streams(top: ir.Function, processes: set[str]) -> None:
    used = {o for i in top.instructions() if i.opcode == "call" and i.callee in processes for o in i.operands}
    for i in top.instructions():
        if i.opcode == "alloca" and "class.hls::stream" in i.source_type and i not in used:
            built = any(i in call.operands for call in top.instructions() if is_constructor(_callee(call)))
            if built or not i.name.endswith(".addr"):
                raise RuleError("stream", f"the stream {i.name} is not used", i.location or top.location)


def _callee(i: ir.Instruction) -> str:
    return i.callee if i.opcode == "call" else ""
