"""Traces on disk: an .npz of counts and, packed, of positions.

header    JSON: kind, version, model, policy, sequences, settings
fields    names of the counts; counts int64 [steps, layers, fields]
selected  int32, all sets one after the other; ends int64 [steps · layers]: where each ends
hot       bits of [tokens] per step and layer, host: bits of [tiles] that the host scores; each padded to bytes
pinned    int32 [steps, layers]
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import TILE
from hillinfer.simulation.trace import LayerStep, Positions, Trace
from hillinfer.whole_file import write_whole

KIND, VERSION = "hillinfer-trace", 1
_FIELDS = tuple(LayerStep.__dataclass_fields__)


def save(trace: Trace, path: Path) -> None:
    """Write it whole or not at all; SettingError for a path of no use."""
    header = {"kind": KIND, "version": VERSION, "model": trace.model, "policy": trace.policy}
    header |= {"sequences": trace.sequences, "settings": dict(trace.settings)}
    counts = [[[getattr(work, name) for name in _FIELDS] for work in step] for step in trace.steps]
    arrays: dict[str, npt.NDArray[Any]] = {
        "header": np.array(json.dumps(header, default=str)),
        "fields": np.array(_FIELDS),
        "counts": np.array(counts, np.int64),
    }
    if trace.positions is not None:
        sets = _flat(trace.positions.selected)
        arrays["selected"] = np.concatenate(sets).astype(np.int32)
        arrays["ends"] = np.cumsum([len(each) for each in sets])
        for name, masks in (("hot", trace.positions.hot), ("host", trace.positions.host)):
            arrays[name] = np.concatenate([np.packbits(each) for each in _flat(masks)])
        arrays["pinned"] = np.array(trace.positions.pinned, np.int32)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    try:
        write_whole(path, file.getvalue())
    except OSError as error:
        raise SettingError(f"the trace {path} cannot be written ({error.strerror}): name another --output") from None


def load(path: Path) -> Trace:
    """Read a trace back; SettingError for a file that is none, or is of another version."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = dict(json.loads(str(arrays["header"])))
    except OSError as error:
        raise SettingError(f"the trace {path} cannot be read ({error.strerror or error}): check the name") from None
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        raise SettingError(f"{path} is no trace: record one with hillinfer simulate record") from None
    if header.get("kind") != KIND or header.get("version") != VERSION:
        raise SettingError(
            f"{path} is a {header.get('kind')} of version {header.get('version')}, and this is for {KIND} {VERSION}: "
            "record it again with hillinfer simulate record"
        )
    try:
        fields = [str(name) for name in arrays["fields"]]
        counts = arrays["counts"]
        steps = [[LayerStep(**dict(zip(fields, map(int, work), strict=True))) for work in step] for step in counts]
        positions = _positions(arrays, steps) if "selected" in arrays else None
        return Trace(header["model"], header["policy"], steps, header["sequences"], header["settings"], positions)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SettingError(f"{path} is not a whole trace ({error}): record it again") from None


def _flat(nested: Sequence[Sequence[Any]]) -> list[Any]:
    return [each for step in nested for each in step]


def _positions(arrays: dict[str, npt.NDArray[Any]], steps: list[list[LayerStep]]) -> Positions:
    layers = len(steps[0])
    sets = np.split(arrays["selected"].astype(np.int64), arrays["ends"][:-1])
    tokens = [work.tokens for step in steps for work in step]

    def by_step(flat: list[Any]) -> list[list[Any]]:
        return [flat[first : first + layers] for first in range(0, len(flat), layers)]

    masks = {}
    for name, counts in (("hot", tokens), ("host", [-(-each // TILE) for each in tokens])):
        starts = np.cumsum([0] + [-(-count // 8) for count in counts])
        masks[name] = by_step(
            [
                np.unpackbits(arrays[name][start : start + -(-count // 8)], count=count).astype(bool)
                for start, count in zip(starts, counts, strict=False)
            ]
        )
    return Positions(by_step(sets), masks["hot"], masks["host"], arrays["pinned"].tolist())
