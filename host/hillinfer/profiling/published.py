"""The head analyses that HeteroCache's authors publish (github.com/ponytaill/HeteroCache, data/clusters).

A file holds a role per layer and KV head, the budget shares r_h, and each pivot's satellites; neither stabilities nor
thresholds. Role names differ between their files: Similar_Leader is a pivot, Stable_Unique an anchor.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from hillinfer.errors import ProfileError
from hillinfer.profiling.identity import ModelIdentity
from hillinfer.profiling.profile import HeadProfile
from hillinfer.profiling.roles import LayerRoles, Role

_NAMES = {
    "anchor": Role.anchor,
    "stable_unique": Role.anchor,
    "volatile": Role.volatile,
    "decaying_unique": Role.volatile,
    "pivot": Role.pivot,
    "leader": Role.pivot,
    "similar_leader": Role.pivot,
    "satellite": Role.satellite,
    "member": Role.satellite,
    "similar_member": Role.satellite,
}
_FILE = re.compile(r"(?:Head_Analysis_)?(?P<model>.+?)_topk\d+.*", re.IGNORECASE)


class _Meta(BaseModel):
    type_map: dict[str, int]
    counts: dict[str, int]


class _Published(BaseModel):
    model_config = ConfigDict(extra="ignore")

    meta: _Meta
    classification_matrix: list[list[int]]
    allocation_matrix: list[list[float]]
    leader_member_relations: list[dict[int, list[int]]]


def is_published(content: Any) -> bool:
    """Whether this is meant to be one of the authors' files."""
    return isinstance(content, dict) and "classification_matrix" in content


def model_of(path: Path) -> str:
    """The model's name out of the file's: ``llama-3.1-8b-instruct_topk1024_th0.5_sim0.5``."""
    match = _FILE.fullmatch(path.stem)
    return match["model"] if match else path.stem


def read(content: Any, name: str) -> HeadProfile:
    """The profile in one of their files. ProfileError if it contradicts itself, pydantic's if parts are missing."""
    file = _Published.model_validate(content)
    roles = {number: _role(word) for word, number in file.meta.type_map.items()}
    matrix = file.classification_matrix
    heads = len(matrix[0]) if matrix else 0
    unknown = {number for row in matrix for number in row} - roles.keys()
    lengths = {len(row) for row in matrix} | {len(row) for row in file.allocation_matrix}
    same_length = len(matrix) == len(file.allocation_matrix) == len(file.leader_member_relations)
    if unknown or lengths != {heads} or not heads or not same_length:
        raise ProfileError(f"the head analysis of {name} is not one of layers × heads, all with a role: fetch it again")
    layers = tuple(
        LayerRoles(
            tuple(roles[number] for number in row),
            {pivot: tuple(sorted(members)) for pivot, members in sorted(clusters.items())},
        )
        for row, clusters in zip(matrix, file.leader_member_relations, strict=True)
    )
    for index, layer in enumerate(layers):
        _check(layer, index, name)
    counted = Counter(role for layer in layers for role in layer.roles)
    told = {_role(word): number for word, number in file.meta.counts.items()}
    if any(counted[role] != told.get(role, 0) for role in Role):
        raise ProfileError(f"the head analysis of {name} counts other roles than it lists: fetch it again")
    shares = np.maximum(np.array(file.allocation_matrix, np.float64), 0)  # −1: such a head keeps everything
    identity = ModelIdentity(name, None, tuple(range(len(layers))), heads)
    return HeadProfile(identity, layers, shares, origin={"source": "github.com/ponytaill/HeteroCache"})


def _role(word: str) -> Role:
    try:
        return _NAMES[word.lower()]
    except KeyError:
        raise ProfileError(f"a head analysis calls a role {word!r}: known are {', '.join(_NAMES)}") from None


def _check(layer: LayerRoles, index: int, name: str) -> None:
    """Every satellite follows exactly one pivot."""
    heads = range(len(layer.roles))
    satellites = [head for head in heads if layer.roles[head] is Role.satellite]
    pivots = [head for head in heads if layer.roles[head] is Role.pivot]
    if sorted(head for members in layer.clusters.values() for head in members) != satellites:
        raise ProfileError(f"the head analysis of {name}: layer {index}'s clusters and satellites do not agree")
    if sorted(layer.clusters) != pivots:
        raise ProfileError(f"the head analysis of {name}: layer {index}'s clusters and pivots do not agree")
