"""Profiles on disk: JSON, checked when read, never half written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hillinfer.config import cache_home
from hillinfer.errors import ProfileError
from hillinfer.profiling import published
from hillinfer.profiling.identity import ModelIdentity
from hillinfer.profiling.profile import HeadProfile
from hillinfer.profiling.roles import LayerRoles, Role
from hillinfer.whole_file import write_whole

_FORMAT: Literal["hillinfer head profile"] = "hillinfer head profile"
Matrix = list[list[float]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Model(_Strict):
    name: str
    kind: str | None = None
    layers: list[int]
    kv_heads: int = Field(ge=1)
    group: int | None = None
    head_dim: int | None = None
    sample: list[float] = []


class _Layer(_Strict):
    roles: list[Role]
    clusters: dict[int, list[int]]

    @model_validator(mode="after")
    def _clusters_are_the_roles(self) -> _Layer:
        """Every satellite follows exactly one pivot of its layer, and every pivot has a satellite."""
        followers = [head for members in self.clusters.values() for head in members]
        heads = range(len(self.roles))
        if sorted(followers) != [h for h in heads if self.roles[h] is Role.satellite]:
            raise ValueError("clusters and satellites do not agree")
        if sorted(self.clusters) != [h for h in heads if self.roles[h] is Role.pivot] or not all(
            self.clusters.values()
        ):
            raise ValueError("clusters and pivots do not agree")
        return self


class _File(_Strict):
    format: Literal["hillinfer head profile"]
    version: Literal[1]
    model: _Model
    tau_stable: float | None
    tau_similar: float | None
    counts: dict[Role, int]
    layers: list[_Layer]
    shares: Matrix
    stability: Matrix | None = None
    similarity: Matrix | None = None
    overlap: list[Matrix] | None = None
    origin: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_shape(self) -> _File:
        layers, heads = len(self.model.layers), self.model.kv_heads
        if len(self.layers) != layers or any(len(layer.roles) != heads for layer in self.layers):
            raise ValueError(f"roles are not of {layers} layers with {heads} heads")
        for name, expected in (("shares", 2), ("stability", 2), ("similarity", 2), ("overlap", 3)):
            matrix = getattr(self, name)
            if matrix is not None and np.shape(matrix) != (layers, heads, heads)[:expected]:
                raise ValueError(f"{name} is not of {layers} layers with {heads} heads")
        return self


def read_profile(path: Path) -> HeadProfile:
    """The profile in a file of ours, or of the authors' (published.py). ProfileError names the file and the fault."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ProfileError(
            f"the profile {path} cannot be read ({error.strerror}): make one with hillinfer profile"
        ) from error
    except ValueError as error:
        raise ProfileError(f"{path} is not a profile: it is not JSON ({error})") from error
    try:
        if published.is_published(content):
            return published.read(content, name=published.model_of(path))
        return _profile(_File.model_validate(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProfileError(
            f"{path} is not a whole profile ({where + ': ' if where else ''}{first['msg']}): "
            "make it again with hillinfer profile"
        ) from error


def write_profile(profile: HeadProfile, path: Path) -> None:
    """Write the file whole or not at all; ProfileError where the folder does not take it."""
    try:
        write_whole(path, json.dumps(as_dict(profile), indent=1) + "\n")
    except OSError as error:
        raise ProfileError(
            f"the profile cannot be written to {path} ({error.strerror}): name a file with --output"
        ) from error


def as_dict(profile: HeadProfile) -> dict[str, Any]:
    """The file's contents, ready for JSON."""
    model = profile.model

    def plain(array: Any) -> Any:
        return None if array is None else np.round(array, 6).tolist()

    return {
        "format": _FORMAT,
        "version": 1,
        "model": {
            "name": model.name,
            "kind": model.kind,
            "layers": list(model.layers),
            "kv_heads": model.kv_heads,
            "group": model.group,
            "head_dim": model.head_dim,
            "sample": [float(f"{weight:.5g}") for weight in model.sample],
        },
        "tau_stable": profile.tau_stable,
        "tau_similar": profile.tau_similar,
        "counts": profile.counts,
        "layers": [
            {
                "roles": [role.value for role in layer.roles],
                "clusters": {str(pivot): list(members) for pivot, members in layer.clusters.items()},
            }
            for layer in profile.layers
        ],
        "shares": profile.shares.tolist(),
        "stability": plain(profile.stability),
        "similarity": plain(profile.similarity),
        "overlap": plain(profile.overlap),
        "origin": dict(profile.origin),
    }


def _profile(file: _File) -> HeadProfile:
    model = file.model
    layers = tuple(
        LayerRoles(tuple(layer.roles), {pivot: tuple(layer.clusters[pivot]) for pivot in sorted(layer.clusters)})
        for layer in file.layers
    )

    def array(values: Any) -> Any:
        return None if values is None else np.array(values, np.float32)

    return HeadProfile(
        ModelIdentity(
            model.name,
            model.kind,
            tuple(model.layers),
            model.kv_heads,
            model.group,
            model.head_dim,
            tuple(model.sample),
        ),
        layers,
        np.array(file.shares, np.float64),
        tau_stable=file.tau_stable,
        tau_similar=file.tau_similar,
        stability=array(file.stability),
        overlap=array(file.overlap),
        similarity=array(file.similarity),
        origin=file.origin,
    )


def default_profile(model_name: str) -> Path:
    """Where the profile of a model is kept unless told otherwise."""
    return cache_home() / "profiles" / f"{model_name}.json"
