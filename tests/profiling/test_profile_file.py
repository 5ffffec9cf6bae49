"""Profiles on disk: what was written is what is read, and nothing else is taken for one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hillinfer.errors import ProfileError
from hillinfer.profiling.profile_file import read_profile, write_profile
from tests.profiling.profiles import random_profile


@pytest.mark.parametrize("seed", range(5))
def test_a_round_trip_changes_nothing(tmp_path, seed):
    profile = random_profile(layers=3, heads=5, seed=seed)
    path = tmp_path / "folder" / "profile.json"
    write_profile(profile, path)
    again = read_profile(path)
    assert again.layers == profile.layers
    assert again.counts == profile.counts
    assert (again.tau_stable, again.tau_similar, again.origin) == (0.5, 0.5, {"text": "none"})
    np.testing.assert_array_equal(again.shares, profile.shares)
    for name in ("stability", "overlap", "similarity"):
        np.testing.assert_allclose(getattr(again, name), getattr(profile, name), atol=1e-6)
    assert again.model.difference(profile.model) is None
    for tau in (0.2, 0.7):
        assert again.judged_by(tau, tau).layers == profile.judged_by(tau, tau).layers
    assert again.judged_by(0, 1.0).counts["volatile"] == 0
    assert [file.name for file in path.parent.iterdir()] == ["profile.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "profile.json"
    write_profile(random_profile(), path)
    before = path.read_text()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hillinfer.whole_file.os.fsync", full)
    with pytest.raises(ProfileError, match="No space left"):
        write_profile(random_profile(seed=1), path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def _spoilt(change):
    def spoil(text):
        content = json.loads(text)
        change(content)
        return json.dumps(content)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[: len(text) // 2], "not JSON"),
        (lambda _: "[]", "not a whole profile"),
        (_spoilt(lambda c: c.pop("layers")), "layers"),
        (_spoilt(lambda c: c.update(version=2)), "version"),
        (_spoilt(lambda c: c["layers"][0]["roles"].__setitem__(0, "boss")), r"layers\.0\.roles\.0"),
        (_spoilt(lambda c: c["layers"][0]["roles"].pop()), "not a whole profile"),
        (_spoilt(lambda c: c["layers"][0].update(clusters={"0": [9]})), "clusters and satellites do not agree"),
        (_spoilt(lambda c: c["shares"].pop()), "shares is not of 2 layers"),
        (_spoilt(lambda c: c.update(extra=1)), "extra"),
    ],
)
def test_a_corrupt_file_is_refused_and_named(tmp_path, spoil, message):
    path = tmp_path / "profile.json"
    write_profile(random_profile(), path)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(ProfileError, match=message) as caught:
        read_profile(path)
    assert "profile.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(ProfileError, match="hillinfer profile"):
        read_profile(tmp_path / "none.json")


def test_models_are_told_apart():
    from dataclasses import replace

    model = random_profile().model
    rounded = replace(model, sample=tuple(round(weight, 1) for weight in model.sample), name="a copy")
    assert model.difference(rounded) is None
    assert model.difference(replace(model, sample=(), kind=None)) is None  # a file of the authors does not tell
    assert "weights" in model.difference(replace(model, sample=tuple(-weight for weight in model.sample)))
    assert "2 full-attention layers, not 3" in model.difference(replace(model, layers=(0, 1, 2)))
    assert "kv heads 4, not 2" in model.difference(replace(model, kv_heads=2))
    assert "elsewhere" in model.difference(replace(model, layers=(1, 3)))
