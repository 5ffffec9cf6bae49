"""The picture of a profile."""

from __future__ import annotations

import pytest

from hillinfer.errors import SettingError
from hillinfer.figures.roles import COLOURS, draw
from hillinfer.profiling.roles import Role
from tests.profiling.profiles import profile_of


def test_every_head_has_the_colour_of_its_role(tmp_path):
    profile = profile_of(["Pssa", "vaPs"], [[0.5, 0.5, 0.5, 0.9], [0.1, 0.7, 0.5, 0.5]])
    path = tmp_path / "roles.svg"
    draw(profile, path)
    text = path.read_text()
    legend = 1
    for role, count in {Role.anchor: 2, Role.volatile: 1, Role.pivot: 2, Role.satellite: 3}.items():
        assert text.count(f"fill: {COLOURS[role]}") == count + legend
    draw(profile, tmp_path / "roles.png")
    assert (tmp_path / "roles.png").read_bytes().startswith(b"\x89PNG")


def test_a_name_that_is_no_pictures(tmp_path):
    with pytest.raises(SettingError, match="ends in"):
        draw(profile_of(["Ps"], [[0.5, 0.5]]), tmp_path / "roles.doc")
