"""Memory and the limits on it, in both versions of control groups."""

from __future__ import annotations

from typing import Any

import pytest

from hillinfer.doctor import State, memory
from tests.doctor.box import Box

MEMINFO = "MemTotal:       16384000 kB\nMemFree:  1000 kB\nMemAvailable:   {} kB\nHugePages_Total:       0\n"


@pytest.mark.parametrize(("kib", "state"), [(8 << 20, State.OK), (1 << 20, State.WARNING)])
def test_what_is_available_counts(box: Box, look: Any, kib: int, state: State) -> None:
    box.write("proc/meminfo", MEMINFO.format(kib))
    found = look(memory, "software")
    assert found["RAM"].state is state
    assert found["RAM"].found == f"{kib >> 20}.0 GiB available of 15.6"


@pytest.mark.parametrize(
    "files",
    [
        {"proc/self/cgroup": "0::/user/run\n", "sys/fs/cgroup/user/memory.max": "{}\n"},
        {
            "proc/self/cgroup": "0::/user/run\n",
            "sys/fs/cgroup/user/run/memory.max": "{}\n",
            "sys/fs/cgroup/user/memory.max": "max\n",
        },
        {"proc/self/cgroup": "7:cpu:/a\n4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "{}\n"},
    ],
)
def test_a_control_group_may_allow_less(box: Box, look: Any, files: dict[str, str]) -> None:
    for size, state in ((1 << 30, State.WARNING), (1 << 34, State.OK)):
        for place, text in files.items():
            box.write(place, text.format(size))
        finding = look(memory, "software")["limit"]
        assert finding.state is state
        assert finding.found.startswith(f"{size >> 30}.0 GiB by control group /")


def test_no_limit_is_no_finding(box: Box, look: Any) -> None:
    box.write("proc/self/cgroup", "0::/\n")
    box.write("sys/fs/cgroup/memory/memory.limit_in_bytes", str((1 << 63) - 4096))
    assert "limit" not in look(memory, "software")
