"""make rtl-device: the kernel's RTL, compiled by Verilator into a shared library that plays the card."""
