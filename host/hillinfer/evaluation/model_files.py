"""Which files a model was loaded from: a run that was killed does not go on with others under the same name."""

from __future__ import annotations

import hashlib
from pathlib import Path

from transformers import PreTrainedModel


def model_files(model: PreTrainedModel) -> str:
    """The hub's commit, or a digest of the names, sizes and times of change of a folder's files; "" of neither.

    Not of what is in them: to read a large model's weights again takes minutes. Who only touched a file is refused,
    too, and starts anew.
    """
    commit = getattr(model.config, "_commit_hash", None)
    name = str(getattr(model.config, "_name_or_path", "") or "")
    if commit or not name or not Path(name).is_dir():
        return str(commit or "")
    found = [(path.name, path.stat()) for path in sorted(Path(name).iterdir()) if path.is_file()]
    told = [f"{file} {about.st_size} {about.st_mtime_ns}" for file, about in found if not file.startswith(".")]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
