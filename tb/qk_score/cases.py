"""Stimuli: the buffers and scalars of one launch, and the Score Blocks that the NumPy model expects of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from tb import qk_model
from tb.qk_layout import Format, Geometry, argument_status
from tb.qk_model import Bools, Integers

Reduce = Literal["max", "sum"]
Kind = Literal["bits", "exact", "corners", "real"]

# Where casts go wrong first: zeros, the ends of the subnormals and normals, ties, ±inf, NaN of either kind and sign.
_FP16_CORNERS = np.array(
    [
        *(0x0000, 0x8000, 0x0001, 0x8001, 0x0200, 0x03FF, 0x83FF, 0x0400, 0x3800, 0xB800, 0x3E00, 0xBE00, 0x4100),
        *(0x57F8, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFFFF),
    ],
    np.uint16,
)


@dataclass(frozen=True)
class Numbers:
    """The numbers of one launch, before they are laid out in beats; shapes as in qk_model.scores.

    exponents are those of groups [tiles, ng]: two heads that share a beat share one.
    """

    q8: Integers
    m: Integers
    r: Integers
    o: Integers
    enabled: Bools
    keys: Integers
    exponents: Integers

    def scores(self, geometry: Geometry, reduce: Reduce) -> qk_model.Int16s:
        """What the NumPy model makes of them."""
        exponents, keys = geometry.of_heads(self.exponents), self.keys
        if not geometry.format.stored:
            of_tokens = qk_model.token_exponents(exponents, len(keys))
            keys = qk_model.cast_fp16(keys.astype(np.uint16), of_tokens[:, :, None], geometry.format.limit)
        return qk_model.scores(self.q8, keys, exponents, self.m, self.r, self.o, self.enabled, reduce)


@dataclass(frozen=True)
class Launch:
    """What the host hands to the kernel, and ``expected``: the bytes it must find in ``blocks``.

    ``features`` says in a few words each what is special about it, for the functional coverage.
    """

    name: str
    geometry: Geometry
    query: bytes
    keys: bytes
    exps: bytes
    n_tokens: int
    first_token: int
    shape: int
    format: int
    min_score: int
    tag: int
    expected: bytes
    features: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def beats(self) -> int:
        """Key beats that the kernel works on; with dual each counts twice."""
        legal = not argument_status(self.n_tokens, self.shape, self.format)
        return self.n_tokens * self.geometry.row_beats * self.geometry.passes if legal else 0

    def illegal(self, **scalars: int) -> Launch:
        """The same buffers with scalars that are not legal: one slot with a status is expected."""
        changed = replace(self, **scalars)  # type: ignore[arg-type]
        status = argument_status(changed.n_tokens, changed.shape, changed.format)
        if not status:
            raise ValueError(f"{scalars} are legal")
        nothing = np.empty(0, np.int16)
        blocks = qk_model.score_blocks(nothing, changed.first_token, changed.tag, changed.min_score, status)
        name = f"{self.name}, but {', '.join(f'{key}={value & 0xFFFFFFFF:#x}' for key, value in scalars.items())}"
        return replace(changed, name=name, expected=blocks, features={"status": str(status)})


@dataclass(frozen=True)
class Stimulus:
    """A recipe for one launch; the same recipe gives the same bytes.

    kind   "bits": every bit pattern of the key format, scores over the whole of their range. "exact": small queries,
           m = 1 and no shift, so that a score is the sum of products to its last bit, and FP16 keys on and beside the
           ties of the cast. "corners": everything from the ends of its range. ("real": see real_keys.py)
    loose  a geometry with more passes and banks than the queries need
    keep   share of the tokens that min_score keeps    disabled   share of the queries that are disabled
    """

    format: Format
    heads: int
    group: int
    d: int
    n: int
    reduce: Reduce = "max"
    kind: Kind = "bits"
    pair: bool = False
    loose: bool = False
    keep: float = 1.0
    disabled: float = 0.0
    first_token: int = 0
    tag: int = 1
    seed: int = 0

    @property
    def name(self) -> str:
        packing = " pair" * self.pair + " loose" * self.loose
        disabled = f" disabled={self.disabled:g}" if self.disabled else ""
        return (
            f"{self.format.name.lower()}{packing} H={self.heads} G={self.group} d={self.d} n={self.n} {self.reduce} "
            f"{self.kind} keep={self.keep:g}{disabled} seed={self.seed}"
        )

    def geometry(self) -> Geometry:
        """How it lies in beats; ValueError when the kernel can't hold it."""
        return Geometry.fit(self.format, self.heads, self.group, self.d, pair=self.pair, loose=self.loose)

    def launch(self) -> Launch:
        """Draw the numbers, lay them out in beats, and let the model score them."""
        rng = np.random.default_rng([self.seed, self.format, self.heads, self.group, self.d, self.n])
        geometry = self.geometry()
        numbers = {"bits": _any_bits, "exact": _exact, "corners": _corners}[self.kind](rng, self, geometry)
        return lay_out(self.name, geometry, numbers, self.reduce, rng, keep=self.keep,
                       first_token=self.first_token, tag=self.tag, kind=self.kind)  # fmt: skip


def lay_out(
    name: str,
    geometry: Geometry,
    numbers: Numbers,
    reduce: Reduce,
    filler: np.random.Generator,
    *,
    kind: Kind,
    keep: float = 1.0,
    first_token: int = 0,
    tag: int = 1,
) -> Launch:
    """The launch of these numbers; min_score is drawn so that about a share ``keep`` of the tokens stays."""
    scores = numbers.scores(geometry, reduce)
    min_score = _min_score(scores, keep)
    n = len(numbers.keys)
    return Launch(
        name,
        geometry,
        geometry.query(numbers.q8, numbers.m, numbers.r, numbers.o, numbers.enabled, filler),
        geometry.keys(numbers.keys),
        geometry.exponents(numbers.exponents),
        n,
        first_token,
        geometry.shape,
        geometry.format | (reduce == "sum") << 4,
        min_score,
        tag,
        qk_model.score_blocks(scores, first_token, tag, min_score),
        _features(geometry, scores, min_score, reduce, kind),
    )


def _min_score(scores: qk_model.Int16s, keep: float) -> int:
    if keep >= 1 or not len(scores):
        return qk_model.SCORE_MIN
    if keep <= 0:
        return int(scores.max()) + 1
    return int(np.quantile(scores, 1 - keep, method="nearest"))


# ---------------------------------------------------------------------------------------------------- numbers


def _any_bits(rng: np.random.Generator, stimulus: Stimulus, geometry: Geometry) -> Numbers:
    tiles, of_queries = -(-stimulus.n // qk_model.TILE_TOKENS), (stimulus.heads, stimulus.group)
    q8 = rng.integers(-128, 128, (*of_queries, stimulus.d))
    m = rng.integers(1 << 14, 1 << 16, of_queries)

    # Most logits are to fill the range of a score without leaving it: the shift follows from the spread of s.
    spread = 73 * {127: 80, 7: 5}[geometry.format.limit] * np.sqrt(stimulus.d)
    target = 12 - (np.log2(stimulus.heads * stimulus.group) / 2 if stimulus.reduce == "sum" else 1.5)
    shift = int(np.log2(spread * 2**15) - target)
    base = rng.integers(-14, 12, geometry.groups)
    exponents: Integers = base + rng.integers(-1, 2, (tiles, geometry.groups))
    of_heads = np.repeat(base, geometry.heads_per_group)[: stimulus.heads]
    r = np.clip(shift - of_heads[:, None] + rng.integers(-1, 2, of_queries), 0, 63)
    o = rng.integers(-2000, 2000, of_queries)

    exponents = _sprinkle(rng, exponents, [-128, -17, -16, 15, 16, 127], 0.5 / geometry.groups)
    enabled = rng.random(of_queries) >= stimulus.disabled

    shape = (stimulus.n, stimulus.heads, stimulus.d)
    if geometry.format.stored:
        bound = (geometry.format.limit + 1) & ~1  # 128 or 8: the copy may hold −128 and −8, whatever a cast gives
        keys: Integers = rng.integers(-bound, bound, shape)
    else:
        keys = _sprinkle(rng, rng.integers(0, 1 << 16, shape).astype(np.uint16), _FP16_CORNERS, 0.1)
    return Numbers(q8, m, r, o, enabled, keys, exponents)


def _exact(rng: np.random.Generator, stimulus: Stimulus, geometry: Geometry) -> Numbers:
    tiles, of_queries = -(-stimulus.n // qk_model.TILE_TOKENS), (stimulus.heads, stimulus.group)
    exponents = rng.integers(-6, 1, (tiles, geometry.groups))  # with r = 0: no shift
    shape = (stimulus.n, stimulus.heads, stimulus.d)
    if geometry.format.stored:
        bound = (geometry.format.limit + 1) & ~1
        keys: Integers = rng.integers(-bound, bound, shape)
    else:
        of_tokens = qk_model.token_exponents(geometry.of_heads(exponents), stimulus.n)[:, :, None]
        halves = rng.integers(-2 * geometry.format.limit - 2, 2 * geometry.format.limit + 3, shape) / 2
        keys = np.ldexp(halves, -of_tokens).astype(np.float16).view(np.uint16)
        keys = keys + (rng.integers(-1, 2, shape) * (halves != 0)).astype(np.uint16)  # one step beside, or on it
    return Numbers(
        rng.integers(-2, 3, (*of_queries, stimulus.d)),
        np.ones(of_queries, np.int64),
        np.zeros(of_queries, np.int64),
        rng.integers(-20, 20, of_queries),
        rng.random(of_queries) >= stimulus.disabled,
        keys,
        exponents,
    )


def _corners(rng: np.random.Generator, stimulus: Stimulus, geometry: Geometry) -> Numbers:
    tiles, of_queries = -(-stimulus.n // qk_model.TILE_TOKENS), (stimulus.heads, stimulus.group)
    shape = (stimulus.n, stimulus.heads, stimulus.d)
    # Rows of one sign reach the largest sums; they stay within the 24 bits of s up to 256 elements.
    bound = geometry.format.limit + 1
    ends = [-bound, -bound + 1, bound - 1] if geometry.format.stored else _FP16_CORNERS
    row = rng.choice(ends, (*shape[:2], 1))
    keys = _sprinkle(rng, np.broadcast_to(row, shape), ends, 0.5 * rng.random())
    q8 = np.broadcast_to(rng.choice([-128, 127], (*of_queries, 1)), (*of_queries, stimulus.d))
    return Numbers(
        _sprinkle(rng, q8, [-128, -1, 0, 1, 127], 0.2),
        rng.choice([0, 1, 32768, 65535], of_queries),
        rng.choice([0, 1, 8, 16, 24, 31, 32, 40, 55, 63], of_queries),
        rng.choice([-(1 << 23), -1, 0, 0, 1, (1 << 23) - 1], of_queries),
        rng.random(of_queries) >= stimulus.disabled,
        keys,
        rng.choice([-128, -17, -16, -15, -1, 0, 1, 14, 15, 16, 127], (tiles, geometry.groups)),
    )


def _sprinkle(rng: np.random.Generator, values: Integers, corners: Any, share: float) -> Integers:
    """The values with a share of them replaced by corner values."""
    corner = np.asarray(corners, values.dtype)[rng.integers(0, len(corners), values.shape)]
    return np.where(rng.random(values.shape) < share, corner, values)


# --------------------------------------------------------------------------------------------------- features


def size_class(n: int) -> str:
    """The class of sizes that n tokens belong to: what a block or a tile makes of them."""
    edges = {0: "0", 1: "1", 1023: "1023", 1024: "1024", 1025: "1025"}
    if n in edges:
        return edges[n]
    return "part of a block" if n < 1024 else "some blocks"


def _features(
    geometry: Geometry, scores: qk_model.Int16s, min_score: int, reduce: Reduce, kind: Kind
) -> dict[str, str]:
    kept = int((scores >= min_score).sum())
    return {
        "format": geometry.format.name.lower(),
        "reduce": reduce,
        "G": str(geometry.group),
        "d": str(geometry.d),
        "size": size_class(len(scores)),
        "kind": kind,
        "packing": ("pair" if geometry.pair else "whole") + (" dual" if geometry.dual else ""),
        "banks": str(geometry.banks),
        "beats per group": str(geometry.beats),
        "beats per row": "1" if geometry.row_beats == 1 else "256" if geometry.row_beats == 256 else "some",
        "groups": {1: "1", 64: "64", 65: "65", 256: "256"}.get(geometry.groups, "some"),
        "kept": "none" if not kept else "all" if kept == len(scores) else "some",
        "status": "0",
    }
