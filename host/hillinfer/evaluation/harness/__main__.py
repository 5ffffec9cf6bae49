"""The harness's own command line, with the model "hillinfer": ``python -m hillinfer.evaluation.harness --help``."""

from __future__ import annotations

import sys

from hillinfer.errors import HillInferError
from hillinfer.evaluation.harness.tasks import harness


def main() -> int:
    """Whatever ``lm_eval`` does with these arguments; 2 for a mistake of ours to tell."""
    try:
        harness()
        from lm_eval.__main__ import cli_evaluate

        import hillinfer.evaluation.harness.model  # noqa: F401  # registers

        cli_evaluate()
    except HillInferError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
