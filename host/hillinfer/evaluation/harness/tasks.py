"""The harness's tasks by name, with their data from a folder or the hub."""

from __future__ import annotations

import io
import json
import logging
import tempfile
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from hillinfer.errors import DocumentError, SettingError, nearest

FOLDERS = {
    "openbookqa": "openbookqa",
    "rte": "glue/rte",
    "piqa": "piqa",
    "copa": "super_glue/copa",
}
"""Where the harness keeps the papers' tasks: only these folders are read for them, not all its thousands of files."""

_KINDS = {".jsonl": "json", ".json": "json", ".parquet": "parquet"}
_SPLITS = ("train", "validation", "test")
_SPLIT_KEYS = ("test_split", "validation_split", "training_split", "fewshot_split")


def harness() -> Any:
    """The library; SettingError says how to get it where it is missing."""
    try:
        import lm_eval.tasks
    except ImportError as error:
        raise SettingError("lm-evaluation-harness is missing: pip install 'hillinfer[harness]'") from error
    logging.getLogger("lm_eval").setLevel(logging.ERROR)  # it warns of its own tasks' files
    return lm_eval


def load(name: str, data: Path | None) -> Any:
    """The task ``name`` of the harness, with its documents.

    data  folder with a folder <name>, or harness/<name>, of files with a split in their names: validation.jsonl,
          main/test-00000-of-00001.parquet; None: the hub

    SettingError names the nearest task for one that is not known; DocumentError says how to get its data.
    """
    library = harness()
    root = Path(library.tasks.__file__).parent
    known = root / FOLDERS[name] if name in FOLDERS else root
    manager = library.tasks.TaskManager(include_defaults=False, include_path=str(known))
    if name not in manager.all_subtasks:
        raise SettingError(f"the harness has no task {name!r}{nearest(name, manager.all_subtasks)}")
    entry = manager.task_index[name]
    own = {} if data is None else _from_folder(name, data, entry.cfg)
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):  # bars of the data sets library
            written = json.dumps({"include": str(entry.yaml_path), "task": name} | own)  # JSON is YAML
            Path(folder, f"{name}.yaml").write_text(written, "utf-8")
            manager = library.tasks.TaskManager(include_defaults=False, include_path=folder)
            return manager.load([name])["tasks"][name]
    except Exception as error:  # the hub's, the data sets library's, a broken file's
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DocumentError(f"the data of {name} cannot be read ({reason}): {_advice(name, entry.cfg)}") from error


def _from_folder(name: str, data: Path, config: dict[str, Any]) -> dict[str, Any]:
    folder = next((each for each in (data / "harness" / name, data / name) if each.is_dir()), data)
    files: dict[str, list[str]] = {}
    kinds = set()
    for path in sorted(each for each in folder.rglob("*") if each.suffix in _KINDS):
        split = next((split for split in _SPLITS if path.name.startswith(split)), None)
        if split is not None:
            files.setdefault(split, []).append(str(path))
            kinds.add(_KINDS[path.suffix])
    wanted = next((config[key] for key in _SPLIT_KEYS[:2] if config.get(key)), "test")
    if wanted not in files:
        raise DocumentError(f"there is no {wanted}.jsonl or .parquet of {name} in {folder}: {_advice(name, config)}")
    if len(kinds) > 1:
        raise DocumentError(f"{folder} has files of {' and '.join(sorted(kinds))}: leave those of one kind there")
    absent = {key: None for key in _SPLIT_KEYS if config.get(key) and config[key] not in files}
    return {"dataset_path": kinds.pop(), "dataset_name": None, "dataset_kwargs": {"data_files": files}} | absent


def _advice(name: str, config: dict[str, Any]) -> str:
    part = config.get("dataset_name")
    chosen = f" --include '{part}/*'" if part else ""
    return (
        f"where there is a network, hf download --repo-type dataset {config.get('dataset_path')}{chosen} "
        f"--local-dir data/harness/{name}, then --data data"
    )
