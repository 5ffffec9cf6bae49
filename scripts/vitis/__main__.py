"""``python -m scripts.vitis``."""

import sys

from .cli import main

sys.exit(main())
