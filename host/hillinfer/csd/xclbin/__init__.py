"""Images for the FPGA (xclbin files): what one says about itself, and whether it is one for this package.

Read without XRT, before anything is loaded: a wrong image is refused on any machine, and in plain words.

container    the file: header and sections
metadata     the kernels: arguments, ports, register offsets (XML)
interfaces   the shell that an image was built for (a device tree)
image        all of it together
checks       whether an image holds this version of qk_score, for this card
"""

from hillinfer.csd.xclbin.checks import (
    Scorer,
    check_mode,
    check_provenance,
    check_shell,
    find_scorer,
    fit_image,
)
from hillinfer.csd.xclbin.image import Image, read_image

__all__ = [
    "Image",
    "Scorer",
    "check_mode",
    "check_provenance",
    "check_shell",
    "find_scorer",
    "fit_image",
    "read_image",
]
