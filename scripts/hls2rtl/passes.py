"""LLVM's passes over the IR, through llvmlite: everything inlined, unrolled, and out of memory where it can be.

The passes are named one by one instead of taking an -O pipeline: no vectorising, no loop idioms (a loop that clears an
array must stay a loop), no reassociation (adder trees stay trees).
"""

from __future__ import annotations

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding as llvm  # type: ignore[import-untyped]

from .errors import INSTALL, ToolError

LLVM_MAJOR = 22

# Loops are unrolled where the source says so, whatever their size, and nowhere else.
_OPTIONS = (
    "-pragma-unroll-threshold=100000000",
    "-unroll-threshold=1",
    "-unroll-runtime=0",
    "-unroll-allow-partial=0",
)

_ready = False


def _initialize() -> None:
    global _ready
    if _ready:
        return
    if llvm.llvm_version_info[0] != LLVM_MAJOR:
        found = ".".join(map(str, llvm.llvm_version_info))
        raise ToolError(f"LLVM {LLVM_MAJOR} is needed, llvmlite has {found}: {INSTALL}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for option in _OPTIONS:
        llvm.set_option("", option)
    _ready = True


def parse(text: str) -> llvm.ModuleRef:
    _initialize()
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def inline(module: llvm.ModuleRef, out_of_line: set[str]) -> None:
    """Leaves the tops and their processes (out_of_line: their symbols), with everything that they call inside them."""
    for function in module.functions:
        if not function.is_declaration:
            function.add_function_attribute("noinline" if function.name in out_of_line else "alwaysinline")
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.run(module, _builder())


def optimise(module: llvm.ModuleRef) -> None:
    """Unrolls, and takes scalars out of arrays, in place."""
    builder = _builder()
    scalars = llvm.create_new_module_pass_manager()
    scalars.add_simplify_cfg_pass()
    scalars.add_instruction_combine_pass()
    scalars.add_loop_simplify_pass()
    scalars.add_lcssa_pass()
    scalars.add_loop_rotate_pass()
    scalars.add_instruction_combine_pass()
    scalars.run(module, builder)

    # Unrolling an outer loop leaves arrays with constant indices; those may decide the count of an inner one.
    for _ in range(2):
        unroll = llvm.create_new_module_pass_manager()
        unroll.add_loop_simplify_pass()
        unroll.add_lcssa_pass()
        unroll.add_loop_unroll_pass()
        unroll.add_sroa_pass()
        unroll.add_instruction_combine_pass()
        unroll.add_simplify_cfg_pass()
        unroll.run(module, builder)

    clean = llvm.create_new_module_pass_manager()
    for _ in range(2):
        clean.add_sroa_pass()
        clean.add_new_gvn_pass()
        clean.add_instruction_combine_pass()
        clean.add_simplify_cfg_pass()
        clean.add_aggressive_dce_pass()
    clean.add_lower_switch_pass()
    clean.add_loop_simplify_pass()
    clean.add_verifier()
    clean.run(module, builder)


def _builder() -> llvm.PassBuilder:
    target = llvm.Target.from_default_triple().create_target_machine(opt=1)
    return llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(1))


def version() -> str:
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"
