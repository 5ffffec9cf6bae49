"""``hillinfer models``: the catalogue, for people and for scripts."""

from __future__ import annotations

import json
from typing import Any

from hillinfer.models import DEFAULT_MODEL

KEYS = {"name", "source", "license", "parameters", "context", "cached", "path"}
KEYS |= {"layers", "heads", "kv_heads", "head_dim"}


def test_table_shows_the_default_model(hill: Any) -> None:
    shown = hill("models")
    assert shown.code == 0
    for word in (DEFAULT_MODEL, "30 layers", "Apache-2.0", "135 M", "--model also takes"):
        assert word in shown.out


def test_json_is_a_list_of_objects(hill: Any) -> None:
    shown = hill("models", "--json")
    entries = json.loads(shown.out)
    assert all(entry.keys() == KEYS for entry in entries)
    [default] = [entry for entry in entries if entry["name"] == DEFAULT_MODEL]
    assert (default["layers"], default["kv_heads"], default["cached"]) == (30, 3, False)  # the tests' cache is empty
