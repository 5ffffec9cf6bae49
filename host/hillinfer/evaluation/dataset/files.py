"""Where a data set's files come from: a folder of the user's, or the Hugging Face hub."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from hillinfer.errors import DocumentError


@dataclass(frozen=True)
class Source:
    """A data set on the hub, and how a person gets it where there is no hub.

    folder      the folder it may have within ``--data``, beside other data sets
    repository  of the hub's data sets
    archive     the one file that holds all others, or None
    """

    folder: str
    repository: str
    archive: str | None = None

    def read(self, name: str, data: Path | None) -> tuple[bytes, str]:
        """The bytes of the file ``name`` and what to call it: from the folder ``data``, or the hub if that is None.

        In the folder the file may lie as it is, or in the folders that archives and habits make. DocumentError where
        it can't be had, with the command that gets it.
        """
        if data is None:
            return self._from_hub(name)
        for folder in (data / self.folder, data):
            for path in (folder / name, folder / "data" / name):
                if path.is_file():
                    return _bytes(path), str(path)
            if self.archive is not None and (folder / self.archive).is_file():
                return _member(folder / self.archive, name), f"{name} in {folder / self.archive}"
        raise DocumentError(f"there is no {name} in {data}, nor in {data / self.folder}: {self._advice(name)}")

    def _from_hub(self, name: str) -> tuple[bytes, str]:
        from huggingface_hub import hf_hub_download

        wanted = self.archive or name
        try:
            path = Path(hf_hub_download(self.repository, wanted, repo_type="dataset"))
        except Exception as error:  # no network, no such file, no permission: httpx's, the hub's own, OSError
            reason = str(error).strip().split("\n")[0] or type(error).__name__
            raise DocumentError(
                f"{self.repository} cannot be had from the hub ({reason}): {self._advice(name)}"
            ) from error
        return _bytes(path) if self.archive is None else _member(path, name), f"{self.repository}/{name}"

    def _advice(self, name: str) -> str:
        wanted = self.archive or name
        return (
            f"where there is a network, hf download --repo-type dataset {self.repository} {wanted} "
            f"--local-dir data/{self.folder}, then --data data"
        )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path} cannot be read ({error.strerror})") from error


def _member(path: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            found = next((each for each in archive.namelist() if each.rsplit("/", 1)[-1] == name), None)
            if found is None:
                raise DocumentError(f"{path} holds no {name}: download it again")
            return archive.read(found)
    except (OSError, zipfile.BadZipFile) as error:
        raise DocumentError(f"{path} is not a whole zip file ({error}): download it again") from error
