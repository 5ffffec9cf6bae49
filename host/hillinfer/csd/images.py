"""Which xclbin a card is given: the one that was named, or one that is where this package puts or finds them."""

from __future__ import annotations

import os
from pathlib import Path

from hillinfer.errors import DeviceError

VARIABLE = "HILLINFER_XCLBIN"
BITSTREAMS = Path(__file__).resolve().parents[3] / "bitstreams"


def find_image(named: Path | None, folder: Path = BITSTREAMS) -> Path:
    """``named``, else $HILLINFER_XCLBIN, else the one in ``folder`` (bitstreams/, where `make xclbin` puts it) for what
    runs here: a card, or emulation when XCL_EMULATION_MODE says so. DeviceError when there is none, or no choice.
    """
    variable = os.environ.get(VARIABLE)
    if named is not None or variable:
        image = named or Path(variable or "")
        if not image.is_file():
            raise DeviceError(f"{image} is no file: correct {'--xclbin' if named else VARIABLE}")
        return image
    target = os.environ.get("XCL_EMULATION_MODE") or "hw"
    found = sorted(folder.glob(f"qk_score.{target}.*.xclbin"))
    if not found:
        raise DeviceError("a card needs the kernel's xclbin: build it (make xclbin), or name one with --xclbin")
    if len(found) > 1:
        names = ", ".join(image.name for image in found)
        raise DeviceError(f"{folder} has several xclbins ({names}): name one with --xclbin")
    return found[0]
