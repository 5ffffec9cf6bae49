"""Cold files: private, nameless, gone with the process; a folder that cannot serve is told before anything is lost."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from hillinfer.csd.cold import files
from hillinfer.errors import ColdPoolError, ColdPoolFull

HOST = Path(__file__).parents[2] / "host"


def _run(code, *args, **kwargs):
    environment = {**os.environ, "PYTHONPATH": str(HOST)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


@pytest.mark.parametrize("direct", [True, False])
def test_a_cold_file_is_private_and_has_no_name(tmp_path, direct):
    file = files.ColdFile(tmp_path, direct=direct)
    assert list(tmp_path.iterdir()) == []
    assert stat.S_IMODE(os.fstat(file.fd).st_mode) == 0o600
    assert os.fstat(file.fd).st_nlink == 0
    data = files.aligned_buffer(8192)
    data[:] = np.arange(8192) % 251
    file.write(data, 4096)
    back = files.aligned_buffer(8192)
    assert file.read(back, 4096) == 8192
    assert (back == data).all()
    file.close()


@pytest.mark.parametrize("direct", [True, False])
def test_a_file_system_without_nameless_files(tmp_path, monkeypatch, direct):
    """The fallback: made with a name, unlinked at once, 0600 all the same."""
    real = os.open

    def without_tmpfile(path, flags, *args, **kwargs):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", without_tmpfile)
    file = files.ColdFile(tmp_path, direct=direct)
    assert list(tmp_path.iterdir()) == []
    assert stat.S_IMODE(os.fstat(file.fd).st_mode) == 0o600
    data = files.aligned_buffer(4096)
    data[:] = 7
    file.write(data, 0)
    back = files.aligned_buffer(4096)
    assert file.read(back, 0) == 4096
    assert (back == 7).all()
    file.close()


def test_a_file_system_without_o_direct_is_served_by_the_page_cache(monkeypatch, tmp_path):
    real = os.open

    def without_direct(path, flags, *args, **kwargs):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "invalid argument")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", without_direct)
    file = files.ColdFile(tmp_path, direct=True)
    assert not file.direct
    file.write(np.full(100, 3, np.uint8), 10)
    back = np.zeros(100, np.uint8)
    assert file.read(back, 10) == 100
    assert (back == 3).all()
    file.close()


def test_a_missing_folder_a_file_and_a_read_only_one(tmp_path):
    with pytest.raises(ColdPoolError, match="does not exist: create it, or name another with --cold-dir"):
        files.prepare_folder(tmp_path / "missing", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(ColdPoolError, match="is not a folder"):
        files.prepare_folder(tmp_path / "file", create=False)
    files.prepare_folder(tmp_path / "a" / "b", create=True)
    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_that_cannot_be_written():
    """Root may write anywhere but where the file system itself refuses, as /proc does."""
    with pytest.raises(ColdPoolError, match="cannot write in the cold folder"):
        files.prepare_folder(Path("/proc"), create=False)
    with pytest.raises(ColdPoolError, match="cannot create the cold folder"):
        files.prepare_folder(Path("/proc/hillinfer"), create=True)


def test_too_little_room_is_said_before(tmp_path):
    with pytest.raises(ColdPoolFull, match=r"GB free and this run needs 9000000000\.00 GB"):
        files.check_room(tmp_path, 9 * 10**18)
    files.check_room(tmp_path, 1)


def test_leftovers_of_dead_processes_are_removed_and_others_kept(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    dead = tmp_path / f"hillinfer-cold-{done.stdout.strip()}-abc"
    alive = tmp_path / f"hillinfer-cold-{os.getpid()}-abc"
    other = tmp_path / "thesis.txt"
    for path in (dead, alive, other):
        path.write_text("x")
    files.prepare_folder(tmp_path, create=False)
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()


_FILL = """
    import resource, signal, sys
    from pathlib import Path
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    sys.path.insert(0, sys.argv[2])
    from tests.csd.conftest import Filled, open_software
    from hillinfer.csd.contract import Stream
    device = open_software(Path(sys.argv[1]))
    filled = Filled(device)
    try:
        for i in range(200):
            filled.append(Stream(0, 0), 64, seed=i)
        device.flush()
    except Exception as error:
        print(type(error).__name__, error)
    device.close()
"""


def test_a_disk_that_fills_up_midway_is_one_clear_error(tmp_path):
    """The kernel refuses for real: a limit on file size, met by the writing threads behind the step."""
    process = _run(_FILL, tmp_path, Path(__file__).parents[2])
    out, err = process.communicate(timeout=60)
    assert out.startswith("ColdPoolFull"), out + err
    assert "is full" in out
    assert "--cold-dir" in out
    assert list(tmp_path.iterdir()) == []


_HOLD = """
    import signal, sys, time
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever runs the tests behind a shell ignores
    from tests.csd.conftest import Filled, open_software
    from hillinfer.csd.contract import Stream
    filled = Filled(open_software(Path(sys.argv[1])))
    filled.append(Stream(0, 0), 6400)
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_remains_however_the_process_ends(tmp_path, blow):
    process = _run(_HOLD, tmp_path, Path(__file__).parents[2])
    assert process.stdout.readline() == "ready\n"
    assert list(tmp_path.iterdir()) == []
    process.send_signal(blow)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_two_processes_share_a_folder_without_meeting(tmp_path):
    processes = [_run(_HOLD, tmp_path, Path(__file__).parents[2]) for _ in range(2)]
    assert [process.stdout.readline() for process in processes] == ["ready\n", "ready\n"]
    for process in processes:
        process.kill()
        process.communicate(timeout=30)
