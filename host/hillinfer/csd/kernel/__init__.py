"""Devices that run ``qk_score``: one driver (KernelDevice), several boards that run the kernel.

board      what the driver asks of a board; hillinfer.csd.boards has them
device     the driver
scorer     its half that scores: keys packed for the kernel, room checked
keys       the two places where keys lie: resident (in the board's memory) and streamed (on the drive)
launches   the queue of launches, Score Blocks on their way back
"""

from hillinfer.csd.kernel.device import KernelDevice
from hillinfer.csd.kernel.scorer import KernelSettings

__all__ = ["KernelDevice", "KernelSettings"]
