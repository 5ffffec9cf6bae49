"""Before torch is imported: its threads sleep while they wait, so that tests do not fight over two cores."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
