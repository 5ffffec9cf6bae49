"""Computational storage devices: the contract, the Score Block format, and the drivers."""
