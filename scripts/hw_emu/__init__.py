"""An emulated SmartSSD: XRT's own runtime in hw_emu mode, with a device process of ours behind it.

docs/emulation.md says how it works. ``python -m scripts.hw_emu run -- COMMAND`` runs a command in the environment.
"""
