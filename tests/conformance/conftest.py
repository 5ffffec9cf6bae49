"""Every test here runs on each driver under test, with one device open at a time, as a card has room for no other."""

from __future__ import annotations

import os

import pytest
import torch

from hillinfer.csd.contract import Device
from hillinfer.kv.geometry import Geometry
from tests.conformance.drivers import VARIABLE, WITH_P2P, open_driver, under_test
from tests.conformance.held import Held

# Of no driver: one of them starts the run that this is.
collect_ignore = ["test_emulated.py", "test_collector.py"] if VARIABLE in os.environ else []
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


class Devices:
    """Opens devices. The one of ``shared`` stays open until another is to be opened: opening a card takes a while."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory
        self._of: tuple[str, Geometry] | None = None
        self._held: Held | None = None

    def shared(self, driver: str, geometry: Geometry) -> Held:
        if self._held is None or self._of != (driver, geometry):
            device = self.open(driver, geometry, self._folders.mktemp("cold"))
            self._of, self._held = (driver, geometry), Held(device, geometry)
        return self._held

    def open(self, driver: str, geometry: Geometry, folder, **settings) -> Device:
        self.close()
        return open_driver(driver, geometry, folder, **settings)

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.device.close()


@pytest.fixture(scope="session")
def devices(tmp_path_factory):
    opened = Devices(tmp_path_factory)
    yield opened
    opened.close()


@pytest.fixture
def held(driver, devices):
    """The driver's shared device: two layers of two heads."""
    return devices.shared(driver, GEOMETRY)
