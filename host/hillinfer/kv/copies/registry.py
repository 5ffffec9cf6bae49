"""Scoring copies by name, the finest first."""

from __future__ import annotations

from hillinfer.kv.copies.base import CopyKind
from hillinfer.kv.copies.centred import Centred
from hillinfer.kv.copies.int8 import Int8
from hillinfer.kv.copies.projected import ProjectedEighth, ProjectedHalf, ProjectedQuarter

KINDS: dict[str, CopyKind] = {
    kind.name: kind for kind in (Int8(), Centred(), ProjectedHalf(), ProjectedQuarter(), ProjectedEighth())
}
