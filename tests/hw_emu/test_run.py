"""Commands in the environment: what they find there, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.hw_emu import cli, environment
from scripts.hw_emu.environment import Settings
from scripts.hw_emu.errors import EmulationError
from scripts.hw_emu.run import CARD_EXIT, DEADLINE_EXIT, run
from tests.hw_emu.emulation import needs_xrt

pytestmark = needs_xrt

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, deadline: float = 120.0, **settings) -> int:
    return run([sys.executable, "-c", code], Settings(**settings), deadline)


def alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_the_exit_code_is_the_commands():
    assert python("raise SystemExit(7)") == 7
    assert python("import os; os.kill(os.getpid(), 9)") == 128 + 9


def test_a_command_finds_its_emulated_card(tmp_path):
    told = tmp_path / "told"
    code = f"""if True:
        import os, pathlib
        variables = os.environ
        assert variables["XCL_EMULATION_MODE"] == "hw_emu" and variables["HW_EMU_KERNEL"] == "native"
        assert pathlib.Path(variables["XILINX_XRT"], "lib/libxrt_core.so.2").exists()
        assert pathlib.Path(variables["HILLINFER_XCLBIN"]).read_bytes()[:7] == b"xclbin2"
        assert pathlib.Path("/tmp", variables["USER"]).is_dir()
        pathlib.Path({str(told)!r}).write_text("/tmp/" + variables["USER"])
    """
    assert python(code) == 0
    assert not Path(told.read_text()).exists()


def test_at_the_deadline_all_of_it_is_killed(tmp_path, capfd):
    told = tmp_path / "child"
    # -m: a child out of the process group, not out of the session. A shell, as it takes no time to start.
    command = ["bash", "-mc", f"sleep 600 & echo $! >'{told}'; wait"]
    assert run(command, Settings(), 5) == DEADLINE_EXIT
    assert not alive(int(told.read_text()))
    assert "stopped after 5 s" in capfd.readouterr().err


def test_what_breaks_a_card_ends_the_command_and_is_told(capfd):
    code = """if True:
        import os, time
        with open(os.environ["HW_EMU_ERRORS"], "a") as file:
            file.write("card 0: broken\\n")
        time.sleep(600)
    """
    assert python(code) == CARD_EXIT
    assert "hw_emu: card 0: broken" in capfd.readouterr().err


def test_ending_the_runner_ends_the_command(tmp_path):
    told = tmp_path / "command"
    code = f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    command = [sys.executable, "-m", "scripts.hw_emu", "run", "--", sys.executable, "-c", code]
    runner = subprocess.Popen(command, cwd=ROOT)
    for _ in range(6000):
        if told.exists() and told.read_text():
            break
        assert runner.poll() is None
        time.sleep(0.05)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 128 + signal.SIGTERM
    assert not alive(int(told.read_text()))


def test_python_is_this_one(tmp_path):
    told = tmp_path / "python"
    assert run(["python", "-c", f"import sys; open({str(told)!r}, 'w').write(sys.prefix)"], Settings(), 30) == 0
    assert told.read_text() == sys.prefix


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--cards", "0", "--", "true"], "1 to 16 cards"),
        (["--kernel", "guess", "--", "true"], "native or rtl"),
        (["--", "/no/such/program"], "cannot be started"),
    ],
)
def test_what_cannot_be_run_is_told(arguments, told, capsys):
    assert cli.main(["run", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_machine_without_xrt_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(environment, "_RUNTIME", "libno_such.so")
    with pytest.raises(EmulationError, match="apt-get install libxrt-dev"):
        environment.library_folder()
    assert os.environ.get("XCL_EMULATION_MODE") is None
