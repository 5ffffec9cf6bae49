"""Kernels that refuse: io_uring forbidden by a filter, memory that may not be locked. Rows are read all the same."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_READ = """
import contextlib, ctypes, os, resource, struct, sys
from pathlib import Path
import numpy as np
from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile, aligned_buffer
from hillinfer.csd.cold.reading import open_reader
from hillinfer.doctor import Machine, Wanted, processor
from hillinfer.errors import SettingError

file = ColdFile(Path(sys.argv[1]), direct=True)
data = aligned_buffer(1 << 20)
data[:] = np.random.default_rng(0).integers(0, 256, len(data), np.uint8)
file.write(data, 0)
rows = data.reshape(-1, 4096)

def read():
    reader = open_reader(4096)
    positions = np.arange(0, 256, 3)
    out = np.empty((len(positions), 4096), np.uint8)
    assert _native.RowFile(reader, file.fd, 4096, file.alignment).start(
        0, positions, _native.checksums(rows), out).finish()
    assert (out == rows[positions]).all()
    return reader
"""

_FORBID = """
def forbid(number):
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050000 | number), (0x06, 0, 0, 0x7FFF0000)]
    program = b"".join(struct.pack("HBBI", *each) for each in code)
    libc, text = ctypes.CDLL(None), ctypes.create_string_buffer(program)
    fprog = struct.pack("HxxxxxxP", len(code), ctypes.addressof(text))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, fprog, 0, 0):
        print("no filters here")
        sys.exit()

forbid(int(sys.argv[2]))
reader = read()
assert reader.engine == "pool", reader.engine
finding = [each for each in processor.examine(Machine(), Wanted()) if each.name == "reads of rows"][0]
os.environ["HILLINFER_IO"] = "io_uring"
try:
    open_reader(4096)
except SettingError as error:
    print(reader.refused, "|", finding.state.value, finding.found, "|", error)
"""

_LOCKED = """
resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
if os.geteuid() == 0:  # whom the limit does not bind
    os.setresuid(65534, 65534, 65534)
reader = read()
print(reader.engine, reader.fixed_buffers)
"""


def _run(code, *args):
    process = [sys.executable, "-c", _READ + textwrap.dedent(code), *map(str, args)]
    environment = {"PYTHONPATH": str(ROOT / "host")}
    done = subprocess.run(process, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("number", "says"), [(1, "Operation not permitted"), (38, "Function not implemented")])
def test_a_kernel_that_forbids_io_uring(tmp_path, number, says):
    out = _run(_FORBID, tmp_path, number)
    if out == "no filters here":
        pytest.skip("this machine allows no seccomp filters")
    refused, finding, error = out.split(" | ")
    assert refused == f"io_uring_setup: {says}"
    assert finding == f"warning threads in pread ({refused})"
    assert error == f"HILLINFER_IO is 'io_uring', which this machine refuses ({refused}): leave it out"


def test_memory_that_may_not_be_locked_is_used_without(tmp_path):
    assert _run(_LOCKED, tmp_path) in ("io_uring False", "pool False")
