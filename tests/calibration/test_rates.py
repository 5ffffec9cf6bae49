"""The formulas of the balance against their algebra (algorithms.md §1)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.calibration.rates import (
    Load,
    Rates,
    Shares,
    Times,
    balanced_share,
    beta_of,
    beta_p2p,
    beta_two_hop,
    even_share,
    predict,
    share_of,
)

speeds = st.floats(1e6, 1e12)
rates = st.builds(Rates, speeds, speeds, speeds, speeds)
alphas = st.floats(0, 1)
nbytes = st.floats(1e3, 1e12)


@given(rates, alphas)
def test_p2p_is_the_papers_quotient(r, alpha):
    expected = r.b_c * r.f_c * (r.b_s + alpha * r.f_s) / (r.b_s * r.f_s * (r.b_c + alpha * r.f_c))
    assert beta_p2p(r, Shares.even(alpha)) == pytest.approx(expected)


@given(rates, alphas)
def test_two_hops_give_the_host_more(r, alpha):
    expected = (1 / r.f_s + alpha / r.b_s + alpha / r.b_c) / (1 / r.f_c + alpha / r.b_c)
    assert beta_two_hop(r, Shares.even(alpha)) == pytest.approx(expected)
    assert beta_two_hop(r, Shares.even(alpha)) >= beta_p2p(r, Shares.even(alpha))


@given(rates, alphas, alphas, nbytes, st.booleans())
def test_at_beta_both_paths_end_together(r, host, device, total, two_hop):
    alpha = Shares(host, device)
    share = share_of((beta_two_hop if two_hop else beta_p2p)(r, alpha))
    load = Load(total, hot=alpha.host * share * total, cold=alpha.device * (1 - share) * total)
    times = predict(r, load, share, two_hop=two_hop)
    assert times.cpu == pytest.approx(times.csd, rel=1e-3)


@given(rates, nbytes, alphas, alphas, st.booleans())
def test_the_balanced_share_is_the_fixed_point_of_beta_with_measured_shares(r, total, hot, cold, two_hop):
    load = Load(total, hot * total, cold * total)
    share = balanced_share(r, load, two_hop=two_hop)
    times = predict(r, load, share, two_hop=two_hop)
    if share in (0.0, 1.0):  # the side that has all, or nothing, is the quicker one all the same, or the slower
        assert times.cpu >= times.csd * (1 - 1e-9) if share == 0 else times.csd >= times.cpu * (1 - 1e-9)
    elif 1e-3 < share < 1 - 1e-3:
        alpha = Shares(load.hot / (share * total), load.cold / ((1 - share) * total))
        beta = (beta_two_hop if two_hop else beta_p2p)(r, alpha)
        assert beta == pytest.approx(beta_of(share), rel=1e-3)
        assert times.error < 1e-6


@given(rates, nbytes, st.floats(0, 1e3), st.floats(0, 1e3))
def test_at_the_even_share_each_side_has_scored_and_done_the_rest_at_once(r, total, host, device):
    share = even_share(r, total, host, device)
    cpu, csd = share * total / r.f_c + host, (1 - share) * total / r.f_s + device
    if 0 < share < 1:
        assert cpu == pytest.approx(csd)
    else:
        assert cpu >= csd * (1 - 1e-9) if share == 0 else csd >= cpu * (1 - 1e-9)


@given(st.floats(0, 1e6))
def test_shares_and_betas_are_one_thing(beta):
    assert beta_of(share_of(beta)) == pytest.approx(beta, rel=1e-3)


def test_the_ends():
    assert beta_of(1.0) == math.inf
    assert Times(0, 0).error == 0
    assert Times(1, 4).error == 0.75
    assert balanced_share(Rates(1, 1, 1, 1), Load(0, 0, 0), two_hop=True) == 0
