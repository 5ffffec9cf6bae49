"""make bench-kernel: what one launch of the kernel costs in clock cycles, measured on its RTL."""
