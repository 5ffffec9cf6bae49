"""Random legal programs: RTL against native C++, with stalls on input and output.

HLS2RTL_SEED moves to other programs than the 200 of every run; the report names each program that differs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hls2rtl.harness import verify
from tests.hls2rtl.programs import program, source

_BATCH = 50
_FIRST = int(os.environ.get("HLS2RTL_SEED", "0"))
_LAUNCHES = [(0, 1, 2), (1, -5, 3), (37, 100, -7), (150, -2147483648, 2147483647)]


@pytest.mark.parametrize("batch", range(4))
def test_random_programs(batch: int, tmp_path: Path) -> None:
    first = _FIRST + batch * _BATCH
    programs = [program(seed) for seed in range(first, first + _BATCH)]
    print(verify(tmp_path, source(programs), programs, _LAUNCHES))
