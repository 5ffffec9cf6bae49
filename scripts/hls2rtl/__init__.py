"""hls2rtl: Vitis-style HLS C++ to SystemVerilog, with open tools only.

The steps, one module each, in the order in which a program passes through them:

    pragmas    #pragma HLS in the preprocessed source            -> loop hints, stream depths, interfaces
    clang      C++ -> LLVM IR, one integer type per variable
    check      the rules of the language that show before optimisation
    passes     LLVM's passes: inline, unroll, scalars out of arrays
    ir         the IR as typed objects with source locations
    regions    loops and the order of blocks
    build      one function -> operations with predicates         (graph, process)
    bursts     p[i] over an m_axi pointer -> one burst
    lookahead  conditions of stage 0 become registered flags
    schedule   operations -> pipeline stages by a model of delay  (delays)
    design     the top function: processes, channels, ports
    verilog    SystemVerilog                                      (verilog/, rtl/)
    report     what was built
"""

__version__ = "1.0.0"
