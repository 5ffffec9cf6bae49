"""Policies by name: a user's own, settings as text, and minimum budgets."""

from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
import torch

from hillinfer import policies
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies import EvictingPolicy, HillInfer, StreamingLLM, registry
from hillinfer.policies.settings import read, settings_of


@pytest.fixture(autouse=True)
def own(monkeypatch):
    monkeypatch.setattr(registry, "_OWN", {})


def _own(name="mine", **attributes):
    def open_(self, geometry):  # noqa: ARG001
        return StreamingLLM().open(geometry)

    space = {"name": name, "source": "me", "keeps": "what I like", "open": open_} | attributes
    return dataclass(frozen=True)(type("Mine", (EvictingPolicy,), space))


def test_a_policy_of_ones_own_is_known_by_name():
    mine = policies.register(_own())
    assert policies.names()[-1] == "mine"
    assert isinstance(policies.create("mine", budget=64), mine)
    again = policies.register(_own())  # a cell of a notebook, run once more
    assert policies.find("mine") is again


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (int, "must be a dataclass"),
        (lambda: None, "must be a dataclass"),
        (_own("snapkv"), "the name is taken"),
        (_own(source=None), "has no source"),
        (dataclass(frozen=True)(type("Half", (EvictingPolicy,), {"name": "half", "source": ""})), "not define open"),
    ],
)
def test_what_cannot_be_registered_says_why(policy, message):
    with pytest.raises(SettingError, match=message):
        policies.register(policy)


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_says_what_it_is_and_what_its_settings_are(name):
    policy = policies.find(name)
    assert policy.name == name
    assert policy.source
    assert policy.keeps
    settings = settings_of(policy)
    assert [setting.name for setting in settings] == [field.name for field in fields(policy)]
    assert [setting.name for setting in settings if not setting.help] == []
    for setting in settings:
        assert setting.type in ("int", "ints", "float", "bool", "str", "file", "budget"), setting


@pytest.mark.parametrize("name", [name for name in policies.names() if name != "full"])
def test_a_budget_that_is_too_small_says_what_is_needed(name):
    policy = policies.find(name)
    if policy is HillInfer or policy().minimum == 1:
        return
    least = policy().minimum
    policies.create(name, budget=least)
    with pytest.raises(SettingError, match=f"{name} needs at least {least} .*--budget {least}"):
        policies.create(name, budget=least - 1)
    with pytest.raises(SettingError, match=f"needs at least {least}"):
        policies.create(name, budget="0.01%").check(100)
    row = Geometry(2, 2, 2, 16, torch.float32)
    with pytest.raises(SettingError, match=f"needs at least {least}"):
        policies.create(name, budget=f"{row.kv_bytes(least, 1) - 1}B").fitted(row, 1)


def test_settings_are_read_by_their_type():
    snapkv, hillinfer = policies.find("snapkv"), policies.find("hillinfer")
    assert read(snapkv, "window", "64") == 64
    assert read(snapkv, "keep_generated", "yes") is True
    assert read(snapkv, "pooling", "max") == "max"
    assert read(hillinfer, "mass", "0.9") == 0.9
    assert read(hillinfer, "mass", "none") is None
    assert read(policies.find("omnikv"), "filter_layers", "0,8,16") == (0, 8, 16)
    for name, text in [("window", "wide"), ("window", "1.5"), ("keep_generated", "maybe"), ("window", "none")]:
        with pytest.raises(SettingError, match=f"the setting {name} of snapkv is .*, not '{text}'"):
            read(snapkv, name, text)


def test_help_goes_on_on_indented_lines():
    class Documented(StreamingLLM):
        """Some words first.

        sinks   how many
                there are
        nothing else
        """

        name: ClassVar[str] = "documented"

    assert {setting.name: setting.help for setting in settings_of(Documented)}["sinks"] == "how many there are"


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("streaming-llm", {"sinks": -1}, "not be negative"),
        ("h2o", {"recent": 1}, "below 1"),
        ("snapkv", {"window": 0}, "at least 1 query"),
        ("snapkv", {"kernel": 4}, "odd"),
        ("snapkv", {"pooling": "median"}, "'mean' or 'max'"),
        ("snapkv", {"windw": 9}, "did you mean 'window'"),
        ("pyramidkv", {"beta": 0.5}, "at least 1"),
        ("cake", {"gamma": -1}, "negative"),
        ("cake", {"tau2": 0}, "above 0"),
        ("full", {"budget": 1}, "it has none"),
        ("hillinfer", {"budget": "20%", "tokens": 9}, "not both"),
        ("pyramid", {}, "did you mean 'pyramidkv'"),
    ],
)
def test_settings_out_of_range(name, settings, message):
    with pytest.raises(SettingError, match=message):
        policies.create(name, **settings)
