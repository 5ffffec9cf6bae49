"""The doctor must work where the engine does not: it imports nothing of it before it looks."""

from __future__ import annotations

import subprocess
import sys


def test_it_starts_without_torch_and_native_module_and_says_so() -> None:
    code = """if True:
        import sys
        sys.modules["torch"] = sys.modules["hillinfer._native"] = None
        from hillinfer.doctor import Wanted, examination, examine, folder, libraries, processor, ready
        examination._SUBJECTS = (processor, folder, libraries)
        found = {finding.name: finding.state.value for finding in examine(Wanted())}
        assert found["native module"] == "missing", found
        assert found["look"] == "warning", found
        """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
