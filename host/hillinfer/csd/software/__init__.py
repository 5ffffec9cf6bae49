"""The software device: an ordinary disk holds the cold pool, a worker of this process does the FPGA's arithmetic."""

from hillinfer.csd.software.device import SoftwareDevice

__all__ = ["SoftwareDevice"]
