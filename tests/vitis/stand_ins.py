"""Stand-ins for AMD's tools, which nobody here has.

They are programs on PATH that note how they were called and leave the files that the real ones leave. What is tested
with them is this project's side: the commands it gives, what it does with the outcome, what it says when one fails.
Nothing is claimed about Vitis.
"""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.vitis.platforms import SMARTSSD

BANNERS = {
    "v++": "****** v++ v{version} (64-bit)\n  **** SW Build 3363252 on 2021-10-14-04:41:01\n",
    "vitis_hls": "Vitis HLS - High-Level Synthesis from C, C++ and OpenCL v{version} (64-bit)\nSW Build 3367213\n",
    "vitis-run": "****** vitis-run v{version} (64-bit)\n  **** SW Build 4026344\n",
    "emconfigutil": "****** configutil v{version} (64-bit)\n",
}

_PROGRAM = """#!{python}
import json, os, pathlib, sys
name, banner, fails, silent = {name!r}, {banner!r}, {fails!r}, {silent!r}
arguments = sys.argv[1:]
if arguments and arguments[0] in ("--version", "-version"):
    print(banner, end="")
    sys.exit(0)
settings = {{key: value for key, value in os.environ.items() if key.startswith("QK_")}}
with open({calls!r}, "a") as file:
    file.write(json.dumps({{"tool": name, "argv": arguments, "settings": settings, "cwd": os.getcwd()}}) + "\\n")
print("INFO: running", name)
if fails:
    print("ERROR: [HLS 200-70] " + fails)
    sys.exit(1)


def leave(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if not silent and name == "v++":
    output = arguments[arguments.index("--output") + 1]
    leave(output, "image of " + pathlib.Path(arguments[-1]).read_text())
    leave(output + ".info", {info!r})
elif not silent and name == "emconfigutil":
    leave(os.path.join(arguments[arguments.index("--od") + 1], "emconfig.json"), "{{}}")
elif not silent and "export" in settings.get("QK_STEPS", ""):
    leave(settings["QK_XO"], "kernel for " + settings["QK_PART"])
"""

# What v++ leaves beside an image, of which one line is read (hand-made after `xclbinutil --info`).
INFO = """
Scalable Clocks
---------------
   Name:      KERNEL_CLK
   Index:     1
   Type:      KERNEL
   Frequency: 500 MHz

   Name:      DATA_CLK
   Index:     0
   Type:      DATA
   Frequency: 300 MHz

System Clocks
"""


@dataclass
class Vitis:
    """A machine where some of AMD's tools are on PATH."""

    folder: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, but for questions about versions: tool, argv, settings, cwd."""
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def install(
        self,
        name: str,
        version: str,
        *,
        banner: str | None = None,
        fails: str = "",
        silent: bool = False,
        info: str = INFO,
    ) -> Path:
        """Put a tool on PATH; fails: its error message, with exit code 1; silent: it ends well and leaves nothing."""
        program = self.folder / "bin" / name
        program.write_text(
            _PROGRAM.format(
                python=sys.executable,
                name=name,
                banner=BANNERS[name].format(version=version) if banner is None else banner,
                fails=fails,
                silent=silent,
                calls=str(self.folder / "calls.jsonl"),
                info=info,
            )
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    def install_release(self, version: str) -> None:
        """All tools of a release: 2021.2 to 2022.2 have vitis_hls, 2024.2 only vitis-run, those between both."""
        self.install("v++", version)
        self.install("emconfigutil", version)
        if version < "2024.2":
            self.install("vitis_hls", version)
        if version >= "2023.1":
            self.install("vitis-run", version)

    def install_platform(self, name: str = SMARTSSD) -> Path:
        """Put a platform where v++ looks for it."""
        file = self.folder / "platforms" / name / f"{name}.xpfm"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("<platform/>")
        return file
