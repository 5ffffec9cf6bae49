# HLS of qk_score: csim, csynth, cosim, export (the .xo), any of them in this order.
#
# `make xo`, `make hls-csim` and `make hls-cosim` set the variables below. By hand, from anywhere:
#   QK_STEPS="csynth" vitis_hls -f hls/vitis/hls.tcl                  (Vitis 2021.2 to 2022.2)
#   QK_STEPS="csynth" vitis-run --mode hls --tcl hls/vitis/hls.tcl    (2023.1 to 2024.2)

proc setting {name default} {
    if {[info exists ::env($name)] && $::env($name) ne ""} { return $::env($name) }
    return $default
}

set root    [file dirname [file dirname [file dirname [file normalize [info script]]]]]
set steps   [setting QK_STEPS {csynth}]
set work    [setting QK_WORK [file join $root build vitis hls manual]]
set part    [setting QK_PART xcku15p-ffva1156-2LV-e]
set period  [setting QK_PERIOD_NS 3.333]
set stimuli [setting QK_STIMULI [file join $root build vitis stimuli.bin]]
set xo      [setting QK_XO [file join $work qk_score.xo]]

file mkdir $work
cd $work
# Components replaced projects in 2024.2; older versions have no such command.
if {[llength [info commands open_component]] > 0} {
    open_component -reset qk_score -flow_target vitis
} else {
    open_project -reset qk_score
    open_solution -reset solution1 -flow_target vitis
}
set_top qk_score
# No include folders: the kernel's files name each other by relative paths, and ap_int.h is to be Vitis's own.
add_files [file join $root hls qk_score.cpp] -cflags -std=c++14
add_files -tb [file join $root hls vitis tb_qk_score.cpp] -cflags "-std=c++14 -Wno-unknown-pragmas"
set_part $part
create_clock -period $period -name default

if {"csim" in $steps} { csim_design -argv $stimuli }
if {"csynth" in $steps} { csynth_design }
if {"cosim" in $steps} { cosim_design -rtl verilog -argv $stimuli }
# Vitis calls a kernel 1.0, which says version 1 of the ABI; for another it takes -version (decision 25).
if {"export" in $steps} { export_design -format xo -output $xo }
exit
