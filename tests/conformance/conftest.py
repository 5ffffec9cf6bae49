"""Every test here runs on each driver under test; opened devices are shared, as opening one can take seconds."""

from __future__ import annotations

import contextlib

import pytest
import torch

from hillinfer.kv.geometry import Geometry
from tests.conformance.drivers import WITH_P2P, open_driver, under_test
from tests.conformance.held import Held

GEOMETRY = Geometry(layers=2, kv_heads=2, group=3, head_dim=16, dtype=torch.float32)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", under_test(), scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test of P2P is none of a driver without it: the only tests that may be not applicable."""
    out = [item for item in items if item.get_closest_marker("p2p") and item.callspec.params["driver"] not in WITH_P2P]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    """``opened(driver, geometry)``: a device that stays open to the end of the session."""
    with contextlib.ExitStack() as stack:
        devices: dict[tuple[str, Geometry], Held] = {}

        def get(driver: str, geometry: Geometry) -> Held:
            if (driver, geometry) not in devices:
                device = open_driver(driver, geometry, tmp_path_factory.mktemp("cold"))
                devices[driver, geometry] = Held(stack.enter_context(contextlib.closing(device)), geometry)
            return devices[driver, geometry]

        yield get


@pytest.fixture
def held(driver, opened):
    """The driver's shared device: two layers of two heads."""
    return opened(driver, GEOMETRY)
