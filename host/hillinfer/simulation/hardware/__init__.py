"""Boxes by name or file: each number of a box comes with where it was found."""

from hillinfer.simulation.hardware.box import Cpu, Dram, Drive, Gpu, Hardware, Pcie, SmartSsd, Software, Way
from hillinfer.simulation.hardware.files import dump, load, names
from hillinfer.simulation.hardware.number import Number

__all__ = [
    "Cpu",
    "Dram",
    "Drive",
    "Gpu",
    "Hardware",
    "Number",
    "Pcie",
    "SmartSsd",
    "Software",
    "Way",
    "dump",
    "load",
    "names",
]
