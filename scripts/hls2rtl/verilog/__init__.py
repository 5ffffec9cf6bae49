"""SystemVerilog: text of modules from scheduled processes, and the fixed modules of rtl/."""
