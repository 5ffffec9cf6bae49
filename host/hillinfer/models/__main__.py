"""``python -m hillinfer.models prepare``: put the default model into the cache. The set-up calls it."""

from __future__ import annotations

import argparse
import logging
import sys

from hillinfer.errors import ModelError
from hillinfer.models.catalogue import DEFAULT_MODEL, prepare


def main(arguments: list[str] | None = None) -> int:
    """Say in short lines what happens; exit code 1 and one line on failure."""
    parser = argparse.ArgumentParser(prog="python -m hillinfer.models", description=__doc__)
    parser.add_argument("command", choices=["prepare"])
    parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="model: %(message)s", stream=sys.stdout)
    logging.getLogger("hillinfer").setLevel(logging.INFO)
    try:
        folder = prepare()
    except ModelError as error:
        print(f"model: {error}", file=sys.stderr)
        return 1
    print(f"model: {DEFAULT_MODEL} is in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
