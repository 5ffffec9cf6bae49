"""A command's report becomes one that is kept: checked, trimmed, and stamped with when, where and by what."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from hillinfer.errors import SettingError
from hillinfer.page.machine import machine, versions
from hillinfer.page.sources import Source, find
from hillinfer.whole_file import write_whole

_LEFT_OUT = ("items", "ratios", "traceEvents")
"""Of a report: what is long and in no table."""
_DIGITS = 5


def keep(source: Source[Any], folder: Path, measured: Path, command: str = "") -> bool:
    """Copy one report from ``folder`` to ``measured``; False where there is none. SettingError for a broken one.

    Of rows and figures that which tables and pictures read is kept, to five digits; settings and versions whole.

    command   what made it, where that was not the source's own
    """
    found = find(source, folder)
    if found.broken:
        raise SettingError(f"{found.problem} To make it anew: {source.command}")
    if found.content is None:
        return False
    report = json.loads((folder / source.file).read_text(encoding="utf-8"))
    read = found.content.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"measured"})
    known = {*type(found.content).model_fields, *_LEFT_OUT}
    kept = {name: value for name, value in report.items() if name not in known} | read
    kept = {"measured": stamp(command or source.command, found.day)} | kept
    write_whole(measured / source.file, written(kept))
    (measured / source.file).chmod(0o644)
    return True


def stamp(command: str, day: str = "") -> dict[str, Any]:
    """Of this machine; ``day`` is when the report was written."""
    where = ", ".join([*machine().values(), *(f"{name} {version}" for name, version in versions().items())])
    return {"date": day or date.today().isoformat(), "machine": where, "command": command, "note": "", "remarks": []}


def written(kept: dict[str, Any]) -> str:
    """JSON with a line for every row, so that a change of one is a change of one line."""
    parts = []
    for name, value in kept.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(f"  {_line(each)}" for each in value)
            parts.append(f' "{name}": [\n{rows}\n ]')
        elif isinstance(value, dict) and value:
            fields = ",\n".join(f"  {json.dumps(key)}: {_line(each)}" for key, each in value.items())
            parts.append(f' "{name}": {{\n{fields}\n }}')
        else:
            parts.append(f' "{name}": {_line(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False, separators=(",", ":"))


def _rounded(value: Any) -> Any:
    """Digits that no measurement here has."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
