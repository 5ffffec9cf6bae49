"""A card through XRT: SmartSSDs, and emulated ones (docs/emulation.md). The same code runs on both.

opening    which card and which image; both are looked at before anything is loaded
board      memory and launches
launches   a run of the kernel, from its arguments to its last state
thread     the one thread that calls XRT, so that a card that does not answer stops nobody else
binding    pyxrt, in the versions there are
"""

from hillinfer.csd.boards.xrt.board import XrtBoard
from hillinfer.csd.boards.xrt.opening import open_board

__all__ = ["XrtBoard", "open_board"]
