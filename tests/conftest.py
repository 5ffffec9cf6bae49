"""For all tests: threads that share two cores, and properties without a deadline.

Before torch is imported: its threads sleep while they wait, so that tests do not fight over the cores.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from hypothesis import settings

# How long an example takes says how busy the machine is, not whether the property holds.
settings.register_profile("hillinfer", deadline=None)
settings.load_profile("hillinfer")
