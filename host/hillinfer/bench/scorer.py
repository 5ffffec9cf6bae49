"""How fast keys are scored: by format, queries per KV head, head dimension and threads, beside what bounds it.

Three bounds are measured in the same run, with the same threads:

    read   all bytes of a buffer of the same size and pages are read and summed, in order or four parts at once, which
           is faster here: nothing scores faster what lies in memory
    core   how many products of 64 bytes of keys with a query a core does when all of it is in its nearest cache; a
           format needs G/64 of them per byte (INT8) or G/32 (INT4), so many queries per head are bound by it
    cache  the scorer itself over keys that stay in the cache: what it takes with memory out of the way

Everything is timed in short windows of the keys, in turns, and the lower decile counts: other work on the machine
takes from all of it alike, and mostly not in the same millisecond.

torch computes the same scores from the same keys in each format it has (hillinfer.bench.torch_scores): ``over_torch``
is over the fastest of all, ``over_torch_held`` over the fastest of those that its users hold keys in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.bench.bounds import Bound
from hillinfer.bench.torch_scores import HELD, Rival, rivals
from hillinfer.config import MOST_THREADS
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import TILE
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.scoring import tile_bytes

FORMATS = ("int8", "int4", "fp16")
GROUPS = (1, 3, 4, 8)
DIMS = (64, 128)
HEADS = 8
_CACHED = 256 << 10  # bytes of keys that stay in a core's cache
_BYTES_PER_PRODUCT = {"int8": 64, "int4": 32}  # of keys, for a product with one query
_STEPS = 200
_AGAIN = 8  # keys that stay in the cache are scored so often in a call: it then takes longer than being called
_WINDOW = 16 << 20  # bytes of keys timed at once: a millisecond, mostly undisturbed
_QUIET = 0.1  # quantile of the times that counts: the slower ones are the neighbours'


@dataclass(frozen=True)
class Figure:
    """One measurement of the scorer. Rates in GB/s of keys.

    read, core, cached   its bounds; core: None where products are not what is counted (fp16)
    products_per_byte    of 64 bytes of keys with a query; with AVX-512 an instruction each
    share_of_read        of the read bound; share_of_bound: of the nearer of read and core
    keys_per_s           millions of keys (of all heads' queries) per second
    over_torch           keys scored per second, over torch's best at the same scores; over_torch_held: over its best of
                         the formats that keys are held in; over_torch_products: over its best at the products alone.
                         None but for the fewest threads
    torch                millions of keys per second by each of torch's formats, scores
    """

    key_format: str
    group: int
    head_dim: int
    threads: int
    rate: float
    read: float
    core: float | None
    cached: float
    products_per_byte: float | None
    share_of_read: float
    share_of_bound: float
    keys_per_s: float
    torch_format: str | None
    over_torch: float | None
    over_torch_held: float | None
    over_torch_products: float | None
    torch: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """What is measured: ``nbytes`` of keys per format, in windows, ``rounds`` times over."""

    formats: Sequence[str] = FORMATS
    groups: Sequence[int] = GROUPS
    dims: Sequence[int] = DIMS
    threads: Sequence[int] = (1, 2)
    nbytes: int = 512 << 20
    rounds: int = 5
    with_torch: bool = True

    def __post_init__(self) -> None:
        for key_format in self.formats:
            if key_format not in FORMATS:
                raise SettingError(f"unknown key format {key_format!r}: use {', '.join(FORMATS)}")
        if not (self.formats and self.groups and self.dims and self.threads):
            raise SettingError("nothing to measure: give at least one format, group, dimension and number of threads")
        if min(*self.groups, *self.dims, *self.threads, self.rounds) < 1:
            raise SettingError("groups, dimensions, threads and rounds are at least 1")
        if max(self.threads) > MOST_THREADS:
            raise SettingError(f"threads is {max(self.threads)}: at most {MOST_THREADS:,}")
        if max(self.dims) > 1024:
            raise SettingError("head dimensions above 1024 are not scored: give smaller ones")
        if self.nbytes < 1 << 20:
            raise SettingError("1 MiB of keys is the least to measure with: give a larger --size")


def run(settings: Settings, say: Callable[[str], None] = lambda _: None) -> list[Figure]:
    """All figures. torch is measured with the fewest threads."""
    say(f"{settings.nbytes >> 20} MiB of keys are made")
    keys = np.random.default_rng(0).integers(0, 2**64, settings.nbytes // 8, np.uint64).view(np.uint8)
    figures = []
    for threads in sorted(settings.threads):
        pool = _native.ThreadPool(threads)
        for dim in settings.dims:
            for group in settings.groups:
                by_torch: list[Rival] = []
                if settings.with_torch and threads == min(settings.threads):
                    say(f"torch, {group} queries per head of {dim}")
                    by_torch = list(rivals(HEADS, group, dim, threads, settings.nbytes, settings.rounds))
                for key_format in settings.formats:
                    say(f"{key_format}, {group} queries per head of {dim}, threads: {threads}")
                    figures.append(_figure(keys, key_format, group, dim, pool, by_torch, settings.rounds))
    return figures


def as_dict(figures: Sequence[Figure], settings: Settings) -> dict[str, Any]:
    """What goes to the JSON: figures, and the summary that the project holds itself to.

    Shares of the read bound are the lowest of one thread and up to 4 (INT4: 1) queries per head, as is the ratio to
    torch.
    """

    def lowest(name: str, key_format: str, most: int) -> float | None:
        figure = _lowest(figures, name, key_format, most)
        return None if figure is None else getattr(figure, name)

    by_group = {
        f"scorer_int8_over_torch_{each.group}_queries": each.over_torch
        for each in figures
        if each.key_format == "int8" and each.head_dim == max(settings.dims) and each.over_torch is not None
    }
    return {
        "variant": _native.variant(),
        "settings": asdict(settings),
        "figures": [asdict(each) for each in figures],
        "summary": {
            "scorer_int8_share_of_bound": lowest("share_of_read", "int8", 4),
            "scorer_int4_share_of_bound": lowest("share_of_read", "int4", 1),
            "scorer_int8_over_torch": lowest("over_torch", "int8", 4),
            "scorer_int8_over_torch_held": lowest("over_torch_held", "int8", 4),
            **by_group,
        },
        "bounds": {name: asdict(bound) for name, bound in bounds(figures).items()},
    }


def bounds(figures: Sequence[Figure]) -> dict[str, Bound]:
    """Of the summary's figures, each of the measurement that it was taken from."""
    found = {}
    for name, key_format, most in (
        ("scorer_int8_share_of_bound", "int8", 4),
        ("scorer_int4_share_of_bound", "int4", 1),
    ):
        figure = _lowest(figures, "share_of_read", key_format, most)
        if figure is not None:
            slower = (
                "reading memory" if figure.read < figure.cached else "the scorer with its keys in the nearest cache"
            )
            least = min(figure.read, figure.cached)
            found[name] = Bound(
                f"{slower}, d {figure.head_dim}, G {figure.group}", least / figure.read, least / figure.rate
            )
    for name in ("over_torch", "over_torch_held"):
        figure = _lowest(figures, name, "int8", 4)
        if figure is not None:
            found[f"scorer_int8_{name}"] = _over_torch(figure, float(getattr(figure, name)))
    return found


def _over_torch(figure: Figure, ratio: float) -> Bound:
    """The most that any scorer could have over torch: with memory's reading, or the core's products, at their best."""
    nearest, what = min((figure.read, "reading memory"), (figure.core or figure.read, "the core's products"))
    distance = nearest / figure.rate
    torch_has = f"torch alone comes to {1 / (ratio * distance):.2f} of it"
    return Bound(f"{what}, d {figure.head_dim}, G {figure.group}; {torch_has}", ratio * distance, distance)


def _lowest(figures: Sequence[Figure], name: str, key_format: str, most: int) -> Figure | None:
    """The measurement of one thread and up to ``most`` queries per head in which ``name`` is lowest."""
    there = (
        each
        for each in figures
        if each.key_format == key_format
        and each.group <= most
        and each.threads == 1
        and getattr(each, name) is not None
    )
    return min(there, key=lambda each: float(getattr(each, name)), default=None)


def _figure(
    keys: npt.NDArray[np.uint8],
    key_format: str,
    group: int,
    dim: int,
    pool: _native.ThreadPool,
    by_torch: Sequence[Rival],
    rounds: int,
) -> Figure:
    query = _query(group, dim).native_for(key_format)
    nbytes = tile_bytes(HEADS, dim, key_format)
    tiles = keys[: len(keys) // nbytes * nbytes].reshape(-1, nbytes)
    words = tiles.reshape(-1).view(np.uint64)
    few = tiles[: max(1, _CACHED // nbytes)]
    window = min(max(1, _WINDOW // nbytes), len(tiles))
    windows = len(tiles) // window
    exponents = np.random.default_rng(2).integers(2, 5, (len(tiles), HEADS)).astype(np.int8)
    scores = np.empty(window * TILE, np.int16)
    scanning: list[float] = []
    in_order: list[float] = []
    in_parts: list[float] = []
    cached: list[float] = []
    multiplying: list[float] = []
    for index in range(rounds * windows):  # in turns: neighbours take from all of them alike
        first = index % windows * window
        part = tiles[first : first + window]
        scanning.append(_seconds(lambda: query.score(part, exponents, scores, pool)))  # noqa: B023  # called at once
        for ahead, parts, reading in ((1, False, in_order), (2, True, in_parts)):
            first = (index + ahead * windows // 3) % windows * window  # one that is in no cache
            read = words[first * nbytes // 8 : (first + window) * nbytes // 8]
            reading.append(_seconds(lambda: pool.read_words(read, parts)))  # noqa: B023
        query.score(few, exponents, scores)
        cached.append(_seconds(lambda: query.score(few, exponents, scores, None, _AGAIN)) / _AGAIN)
        multiplying.append(_seconds(lambda: _native.multiply_steps(_STEPS)))
    seconds, ordered, parted, in_cache, of_steps = (
        float(np.quantile(each, _QUIET)) for each in (scanning, in_order, in_parts, cached, multiplying)
    )
    rate, bound = window * nbytes / seconds / 1e9, window * nbytes / min(ordered, parted) / 1e9
    products = group / _BYTES_PER_PRODUCT[key_format] if key_format in _BYTES_PER_PRODUCT else None
    core = None
    if products is not None:
        core = pool.threads * _native.multiply_steps(_STEPS) / of_steps / products / 1e9
    keys_per_s = window * TILE * HEADS / seconds / 1e6
    return Figure(
        key_format=key_format,
        group=group,
        head_dim=dim,
        threads=pool.threads,
        rate=rate,
        read=bound,
        core=core,
        cached=pool.threads * few.nbytes / in_cache / 1e9,
        products_per_byte=products,
        share_of_read=rate / bound,
        share_of_bound=rate / min(bound, core or bound),
        keys_per_s=keys_per_s,
        torch_format=max(by_torch, key=lambda each: each.scores).name if by_torch else None,
        over_torch=keys_per_s / max(each.scores for each in by_torch) if by_torch else None,
        over_torch_held=keys_per_s / max(each.scores for each in by_torch if each.name in HELD) if by_torch else None,
        over_torch_products=keys_per_s / max(each.products for each in by_torch) if by_torch else None,
        torch={each.name: each.scores for each in by_torch},
    )


def _query(group: int, dim: int) -> QuantisedQuery:
    """A query whose logits are of usual size."""
    rng = np.random.default_rng(1)
    q8 = rng.integers(-127, 128, (HEADS, group, dim)).astype(np.int8)
    each = np.zeros((HEADS, group), np.int32)
    return QuantisedQuery(q8, each + 40000, each + 14, each + 500, "max", tuple(range(HEADS)))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
