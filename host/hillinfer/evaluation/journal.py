"""What a run has finished so far: one JSON object a line, each on the medium before the next item begins."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from hillinfer.errors import SettingError

_VERSION = 2


class Journal:
    """Opens the journal at ``path``, or begins it; of two runs at once the second is refused.

    path   its folder is made where it is missing
    key    what the results depend on, JSON; SettingError if what is there was made with another

    ``finished`` has the lines so far, in order. A line that was cut short when the process died counts as not written.
    """

    def __init__(self, path: Path, key: dict[str, Any]) -> None:
        self.path = path
        self.finished: list[dict[str, Any]] = []
        head = json.loads(json.dumps({"kind": "hillinfer-eval-items", "version": _VERSION, **key}))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise SettingError(f"{path} cannot be written ({error.strerror}): name another with --output") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read(head)
        except BlockingIOError:
            self._file.close()
            raise SettingError(f"another run is writing {path}: wait for it, or name another with --output") from None
        except BaseException:
            self._file.close()
            raise

    def _read(self, head: dict[str, Any]) -> None:
        self._file.seek(0)
        written = self._file.read()
        whole = written[: written.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        try:
            lines = [dict(json.loads(line)) for line in whole.splitlines()]
        except (ValueError, TypeError, RecursionError):
            raise SettingError(f"{self.path} is damaged: delete it, and the run starts anew") from None
        if not lines:
            self._write(head)
        elif differ := [name for name in {**head, **lines[0]} if head.get(name) != lines[0].get(name)]:
            raise SettingError(
                f"{self.path} is of an unfinished run with other {', '.join(differ)}: go on with those, delete it to "
                "start anew, or name another file with --output"
            )
        self.finished = lines[1:]

    def append(self, item: dict[str, Any]) -> None:
        """Note a finished item; it is on the medium when this returns."""
        self._write(item)
        self.finished.append(item)

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise SettingError(f"{self.path} cannot be written ({error.strerror}): make room, then run again") from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._file.close()
