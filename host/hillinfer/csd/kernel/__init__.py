"""Devices that run ``qk_score``: one driver (KernelDevice), several boards that run the kernel."""
