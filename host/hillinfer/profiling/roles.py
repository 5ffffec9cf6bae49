"""From numbers to roles: greedy star clustering of each layer's heads, and what the heads outside clusters are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from hillinfer.profiling.similarity import Overlaps


class Role(str, Enum):
    """What a KV head keeps on the compute device.

    anchor      looks at the same tokens all along: its most important ones, for ever
    volatile    looks elsewhere all the time, and like no other head: everything
    pivot       stands for a cluster of heads that look alike: everything, and it watches for drift
    satellite   follows a pivot: its most important tokens, refilled with the pivot's when that drifts
    """

    anchor = "anchor"
    volatile = "volatile"
    pivot = "pivot"
    satellite = "satellite"

    @property
    def whole(self) -> bool:
        """Whether such a head keeps every token on the device."""
        return self in (Role.volatile, Role.pivot)


@dataclass(frozen=True)
class LayerRoles:
    """One layer: a role per KV head, and for each pivot (ascending) its satellites (ascending)."""

    roles: tuple[Role, ...]
    clusters: dict[int, tuple[int, ...]]


def star_clusters(overlap: Overlaps, threshold: float) -> dict[int, tuple[int, ...]]:
    """Clusters {pivot: satellites} of heads with pairwise overlap float32 [H, H], joined where it is ≥ ``threshold``.

    The unassigned head with most unassigned neighbours becomes a pivot, the lowest one of several; these neighbours
    become its satellites; and so on until no unassigned head has an unassigned neighbour. Where sets differ in size,
    overlap is not symmetric: an edge needs one direction only.
    """
    joined = np.maximum(overlap, overlap.T) >= threshold
    np.fill_diagonal(joined, False)
    clusters: dict[int, tuple[int, ...]] = {}
    free = np.ones(len(joined), bool)
    while True:
        degree = np.where(free, (joined & free).sum(-1), -1)
        pivot = int(degree.argmax())  # the first of the largest
        if degree[pivot] <= 0:
            return dict(sorted(clusters.items()))
        satellites = np.flatnonzero(joined[pivot] & free)
        clusters[pivot] = tuple(int(head) for head in satellites)
        free[[pivot, *satellites]] = False


def layer_roles(
    stability: npt.NDArray[np.float32], overlap: Overlaps, tau_stable: float, tau_similar: float
) -> LayerRoles:
    """Roles of the heads of a layer with S_stable float32 [H] and pairwise overlap float32 [H, H]."""
    clusters = star_clusters(overlap, tau_similar)
    satellites = {head for members in clusters.values() for head in members}

    def role(head: int) -> Role:
        if head in clusters:
            return Role.pivot
        if head in satellites:
            return Role.satellite
        return Role.anchor if stability[head] >= tau_stable else Role.volatile

    return LayerRoles(tuple(role(head) for head in range(len(stability))), clusters)
