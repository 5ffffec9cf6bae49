"""python -m scripts.results: docs/results.md, from the measurements in docs/measured.

    python -m scripts.results                        the page anew
    python -m scripts.results --from build/reports   first keep the reports of a run in place of those kept so far
    python -m scripts.results --from build/reports --only eval-gemma --command "hillinfer eval --model gemma3 …"

Remarks in a kept report are about its own run; a new one has none until somebody writes them into its file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hillinfer.errors import HillInferError
from scripts.results.keep import keep
from scripts.results.render import render, sources

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main() -> int:
    """The command line; 2 for a report that cannot be read."""
    parser = argparse.ArgumentParser(prog="results", description="Write docs/results.md from docs/measured.")
    parser.add_argument("--from", dest="folder", type=Path, help="keep the reports of this folder first")
    parser.add_argument("--only", default="", help="reports to keep, by commas: decode,big; default: all there are")
    parser.add_argument("--command", default="", help="what made the one report of --only, if not what its table says")
    options = parser.parse_args()
    only = [name.strip() for name in options.only.split(",") if name.strip()]
    if options.command and len(only) != 1:
        parser.error("--command is of one report: name it with --only")
    try:
        if options.folder is not None:
            for source in sources():
                wanted = not only or source.file.removesuffix(".json") in only
                if wanted and keep(source, options.folder, DOCS / "measured", options.command):
                    print(f"kept: docs/measured/{source.file}")
        (DOCS / "results.md").write_text(render(DOCS / "measured"), encoding="utf-8")
    except HillInferError as error:
        print(f"results: {error}", file=sys.stderr)
        return 2
    print("written: docs/results.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
