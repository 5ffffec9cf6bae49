"""A command's report becomes one that is kept: checked, trimmed, and stamped with when, where and by what."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from hillinfer.errors import SettingError
from hillinfer.page.machine import machine, versions
from hillinfer.page.sources import Source, find

_LEFT_OUT = ("items", "ratios", "traceEvents")
"""Of a report: what is long and in no table."""


def keep(source: Source[Any], folder: Path, measured: Path) -> bool:
    """Copy one report from ``folder`` to ``measured``; False where there is none. SettingError for a broken one."""
    found = find(source, folder)
    if found.broken:
        raise SettingError(f"{found.problem} To make it anew: {source.command}")
    if found.content is None:
        return False
    report = json.loads((folder / source.file).read_text(encoding="utf-8"))
    kept = {name: value for name, value in report.items() if name not in _LEFT_OUT}
    kept = {"measured": stamp(source.command, found.day)} | kept
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (measured / source.file).write_text(text + "\n", encoding="utf-8")
    return True


def stamp(command: str, day: str = "") -> dict[str, Any]:
    """Of this machine; ``day`` is when the report was written."""
    where = ", ".join([*machine().values(), *(f"{name} {version}" for name, version in versions().items())])
    return {"date": day or date.today().isoformat(), "machine": where, "command": command, "note": "", "remarks": []}
