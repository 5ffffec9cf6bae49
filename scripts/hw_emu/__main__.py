"""``python -m scripts.hw_emu``."""

import sys

from .cli import main

sys.exit(main())
