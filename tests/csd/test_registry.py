"""Devices by name: the one that is named, in the folder that is named, and nothing imported for any other."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from hillinfer.config import StoreSettings
from hillinfer.csd.registry import open_device
from tests.csd.conftest import GEOMETRY
from tests.hls.conftest import library as library


def _open(folder, **settings):
    return contextlib.closing(open_device(StoreSettings(cold_dir=folder, **settings), GEOMETRY, 1024, lambda *_: None))


@pytest.mark.parametrize(
    ("device", "says"), [("software", "software"), ("native", "native"), ("native,native", "native,native")]
)
def test_a_device_has_its_name(library, tmp_path, device, says):  # noqa: ARG001
    with _open(tmp_path, device=device) as opened:
        assert opened.capabilities.name == says


def test_settings_reach_the_device(library, tmp_path):  # noqa: ARG001
    with _open(tmp_path, device="native", device_keys="stream") as opened:
        assert opened.scorer.keys == "stream"
    with _open(tmp_path, device="native,native", device_split="layer", on_device_error="fallback") as opened:
        assert type(opened.scorer).__name__ == "FallbackScorer"


def test_a_folder_that_is_not_there_closes_the_boards_again(library, tmp_path, monkeypatch):  # noqa: ARG001
    from hillinfer.csd.boards.native import NativeBoard

    closed = []
    monkeypatch.setattr(NativeBoard, "close", lambda board: closed.append(board))
    with pytest.raises(Exception, match="does not exist"), _open(tmp_path / "none", device="native,native"):
        pass
    assert len(closed) == 2


def test_only_what_is_used_is_imported(tmp_path):
    code = f"""if True:
        import sys
        from pathlib import Path
        from hillinfer.config import StoreSettings
        from hillinfer.csd.registry import open_device
        from tests.csd.conftest import GEOMETRY
        open_device(StoreSettings(cold_dir=Path({str(tmp_path)!r})), GEOMETRY, 1024, lambda *_: None).close()
        assert not [name for name in sys.modules if "csd.boards" in name or name in ("pyxrt", "pynq")]"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
