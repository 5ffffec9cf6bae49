"""For all tests: threads that share two cores, properties without a deadline, and what takes longest first.

Before torch is imported: its threads sleep while they wait, so that tests do not fight over the cores; where several
processes share the tests (pytest -n), each computes on one thread.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes, or its making, says how busy the machine is, not whether the property holds. And fixtures
# that examples share are meant to be shared: a folder, a loaded library.
settings.register_profile(
    "hillinfer", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("hillinfer")

_LONGEST = ("tests/tb/test_cosim.py", "tests/conformance/test_emulated.py")
"""So that none of them is left to run alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.location[0], len(places)))
