"""python -m scripts.conformance [--drivers software,rtl] [--output FILE]: the suite on every driver, as JSON.

The file holds, for each driver, the names of the tests that passed, failed, were skipped and do not apply. Exit code 1
when one failed, was skipped, or is not applicable without being about P2P.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from scripts.conformance.run import DRIVERS, ROOT, Outcomes, run_driver


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="conformance", description="One suite on every driver.")
    parser.add_argument("--drivers", default=",".join(DRIVERS), help=f"of {', '.join(DRIVERS)} (default: all)")
    parser.add_argument("--kernel", default="rtl", choices=["rtl", "native"], help="of emulated cards (default: rtl)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "reports" / "conformance.json")
    options = parser.parse_args()
    drivers = options.drivers.split(",")
    if not set(drivers) <= set(DRIVERS):
        parser.error(f"--drivers {options.drivers}: known are {', '.join(DRIVERS)}")
    results, seconds = {}, {}
    for driver in drivers:
        print(f"\n{driver}:", flush=True)
        start = time.monotonic()
        results[driver] = run_driver(driver, kernel=options.kernel)
        seconds[driver] = time.monotonic() - start
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print()
    for driver, outcomes in results.items():
        counts = ", ".join(f"{len(names)} {outcome.replace('_', ' ')}" for outcome, names in outcomes.items())
        print(f"{driver:<10}{counts}, {seconds[driver]:.0f} s")
    print(f"in {options.output}")
    wrong = [f"{driver}: {name}" for driver, outcomes in results.items() for name in complaints(outcomes)]
    for line in wrong:
        print(f"conformance: {line}", file=sys.stderr)
    return 1 if wrong else 0


def complaints(outcomes: Outcomes) -> list[str]:
    """What a driver that conforms does not have."""
    lines = [f"{name} {outcome}" for outcome in ("failed", "skipped") for name in outcomes[outcome]]
    return lines + [f"{name} is not applicable" for name in outcomes["not_applicable"] if "p2p" not in name]


if __name__ == "__main__":
    sys.exit(main())
