"""Which suite runs: ``core`` is part of the project's tests, ``full`` takes everything further."""

from __future__ import annotations

import os

SUITE_VARIABLE = "QK_SUITE"
FULL = os.environ.get(SUITE_VARIABLE) == "full"
KEYS_VARIABLE = "QK_KEYS"  # the file of a real model's keys
