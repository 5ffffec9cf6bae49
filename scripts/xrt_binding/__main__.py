"""python -m scripts.xrt_binding: build the module into build/pyxrt, where XRT's headers are."""

from __future__ import annotations

import sys

from scripts.xrt_binding.build import BindingError, build


def main() -> int:
    """0, or 2 when something is missing or does not compile."""
    try:
        print(build())
    except BindingError as error:
        print(f"pyxrt: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
