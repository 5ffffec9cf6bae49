"""``python -m hls2rtl``."""

import sys

from .cli import main

sys.exit(main())
