"""This project on the machine: its environment, XRT's Python module in it, the image, and the doctor's verdict."""

from __future__ import annotations

import sys
from pathlib import Path

from .step import Setting, Step

_PTH = "xrt.pth"


def environment(setting: Setting) -> Step:
    """.venv, by the same script as everywhere."""
    python = setting.repository / ".venv/bin/python"
    return Step(
        name="hillinfer",
        what="this project in .venv",
        why="torch, transformers and the package itself, apart from the system's Python",
        found=str(python) if python.exists() else "no .venv",
        done=python.exists() and setting.machine.run([python, "-c", "import hillinfer._native"], 60) == (0, ""),
        commands=(("env", f"PYTHON={sys.executable}", "bash", str(setting.repository / "scripts/setup")),),
        undo="rm -rf .venv",
    )


def pyxrt(setting: Setting) -> Step:
    """XRT's Python module where .venv finds it: its own if it is for this Python, else the one that is built here."""
    python = setting.repository / ".venv/bin/python"
    answer = setting.machine.run([python, "-c", "import pyxrt; pyxrt.device; print(pyxrt.__file__)"], 60)
    own = setting.machine.path("opt/xilinx/xrt/python")
    fits = setting.machine.run([python, "-c", f"import sys; sys.path.append({str(own)!r}); import pyxrt"], 60) == (
        0,
        "",
    )
    folder = own if fits else setting.repository / "build/pyxrt"
    write = f"import sysconfig; print({str(folder)!r}, file=open(sysconfig.get_path('purelib') + '/{_PTH}', 'w'))"
    build = (("make", "-C", str(setting.repository), "pyxrt"),)
    return Step(
        name="pyxrt",
        what="XRT's Python module in .venv",
        why="XRT's own is built for the system's Python (3.8 on Ubuntu 20.04), which is too old here; the one of this "
        "project has the same calls, over XRT's public C++ headers, for any Python",
        found=answer[1] if answer is not None and answer[0] == 0 else "not found by .venv",
        done=answer is not None and answer[0] == 0,
        commands=(*(() if fits else build), (str(python), "-c", write)),
        undo=f"rm .venv/lib/python3.*/site-packages/{_PTH}",
    )


def image(setting: Setting) -> Step:
    """The xclbin, which takes hours and Vitis to build, and may come from another machine."""
    images = sorted((setting.repository / "bitstreams").glob("*.hw.*.xclbin"))
    return Step(
        name="image",
        what="the kernel's image for the card, in bitstreams",
        why="it is what the FPGA is loaded with",
        found=", ".join(each.name for each in images) or "none",
        done=_verified(setting, images),
        by_hand=(
            "on a machine with Vitis 2021.2 and the platform's development package (hours; docs/vitis.md):",
            "  source <Vitis>/settings64.sh && make xclbin && make report",
            "then copy the .xclbin and its .json into bitstreams here; make verify compares them with these sources",
        ),
        undo="delete both files",
    )


def _verified(setting: Setting, images: list[Path]) -> bool:
    """Whether one of the images is what its record says, of the sources that are here."""
    command = [sys.executable, "-m", "scripts.vitis", "verify"]
    return any((setting.machine.run([*command, image], 60) or (1, ""))[0] == 0 for image in images)


def doctor(setting: Setting) -> Step:
    """The verdict."""
    hillinfer = setting.repository / ".venv/bin/hillinfer"
    cold = ("--cold-dir", str(setting.cold_dir)) if setting.cold_dir else ()
    xrt = () if "XILINX_XRT" in setting.machine.environ else ("env", "XILINX_XRT=/opt/xilinx/xrt")
    return Step(
        name="doctor",
        what="hillinfer doctor --device xrt:0",
        why="looks at all of this once more, from the program that will use it",
        found="run each time",
        done=None,
        commands=((*xrt, str(hillinfer), "doctor", "--device", "xrt:0", *cold),),
    )
