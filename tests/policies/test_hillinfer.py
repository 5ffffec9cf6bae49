"""Settings of the HillInfer policy, and the registry."""

import numpy as np
import pytest

from hillinfer import policies
from hillinfer.errors import SettingError
from hillinfer.policies import HillInfer


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "above 0 and at most 1"),
        ({"alpha": 1.01}, "above 0 and at most 1"),
        ({"alpha": float("nan")}, "above 0 and at most 1"),
        ({"tokens": 0}, "at least 1 token"),
        ({"mass": 0}, "above 0"),
        ({"mass": 1.5}, "at most 1"),
        ({"reduce": "mean"}, "'max-lse' or 'sum'"),
        ({"scope": "layer"}, "'token' or 'head'"),
        ({"mass": 0.9, "reduce": "sum"}, "mass needs reduce='max-lse'"),
        ({"floor": -1}, "negative"),
        ({"decay": 1}, "below 1"),
        ({"cold_margin": -0.1}, "0 to 100 nats"),
        ({"cold_margin": float("nan")}, "0 to 100 nats"),
        ({"cold_margin": 2, "reduce": "sum"}, "not in nats"),
        ({"cold_margin": 2, "mass": 0.9}, "exclude each other"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(SettingError, match=message):
        policies.create("hillinfer", **settings)


def test_unknown_names_get_the_nearest():
    with pytest.raises(SettingError, match="did you mean 'hillinfer'"):
        policies.create("hilinfer")
    with pytest.raises(SettingError, match="did you mean 'alpha'"):
        policies.create("hillinfer", alfa=0.1)
    assert policies.create("full").name == "full"


@pytest.mark.parametrize(
    ("policy", "tokens", "budget"),
    [
        (HillInfer(alpha=0.1), 10_000, 1000),
        (HillInfer(alpha=0.1), 10_001, 1001),
        (HillInfer(alpha=0.1), 100, 64),
        (HillInfer(alpha=0.1), 10, 10),
        (HillInfer(alpha=0.1, floor=0), 10, 1),
        (HillInfer(alpha=1), 10_000, 10_000),
        (HillInfer(tokens=512), 10_000, 512),
        (HillInfer(tokens=512), 100, 100),
        (HillInfer(budget="20%"), 10_000, 2000),
        (HillInfer(budget=0.2, alpha=1), 10_000, 2000),
        (HillInfer(budget="512"), 10_000, 512),
        (HillInfer(budget="512"), 100, 100),
    ],
)
def test_budgets(policy, tokens, budget):
    assert policy.attended(tokens) == budget
    assert policy.exact(tokens) == (budget == tokens)


def test_mass_attends_to_no_more_than_the_budget():
    scores = np.random.default_rng(0).normal(0, 300, 5000).astype(np.int16)
    few, many = (HillInfer(alpha=0.2, mass=mass).select([scores])[0] for mass in (0.3, 0.99))
    assert 64 <= len(few) < len(many) <= 1000
    assert set(few) <= set(many)


def test_what_a_cold_token_loses_is_in_units_of_a_score():
    assert HillInfer(cold_margin=0.5).handicap == 128
    assert HillInfer(cold_margin=0).handicap == HillInfer(mass=0.9).handicap == HillInfer(reduce="sum").handicap == 0
    assert 0 < HillInfer(cold_margin=100).handicap < 2**15
