"""The split of the scoring: no result depends on it, no budget is broken by it, and it goes where the formula says."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.calibration import file
from hillinfer.calibration.figure import Figure
from hillinfer.calibration.fingerprint import fingerprint
from hillinfer.calibration.measure import STEPS
from hillinfer.calibration.rates import Rates, share_of
from hillinfer.config import Budget, StoreSettings
from hillinfer.csd.contract import Counters
from hillinfer.errors import CorruptRecordError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.balancing import Balance, open_balance
from hillinfer.pipeline.chosen import Spent
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer
from hillinfer.store.split import Split

GEOMETRY = Geometry(2, 2, 2, 16, torch.float32)
POLICY = HillInfer(alpha=0.1, floor=8, cold_margin=0)  # else it asks what is in memory, which the split changes
PROMPT, STEPS_DONE = 450, 70  # a tile is stored while decoding


def _run(folder, *, before_step=lambda *_: None, **given):
    """Outputs of every step, and the engine, still open."""
    store = StoreSettings(cold_dir=folder, **{"hot_bytes": Budget.parse("20%"), **given})
    engine = TieredEngine(GEOMETRY, POLICY, store, sequences=1, max_tokens=1 << 14, device=torch.device("cpu"))
    generator, outs = torch.Generator().manual_seed(0), []
    for step in range(STEPS_DONE + 1):
        before_step(engine, step)
        count = 1 if step else PROMPT
        query = torch.randn(4, count, 16, generator=generator) * 2
        keys, values = (torch.randn(2, count, 16, generator=generator) for _ in range(2))
        run = engine.decode if step else engine.exact
        outs.append([run(layer, 0, query, keys, values, 0.25) for layer in range(GEOMETRY.layers)])
    return outs, engine


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    outs, engine = _run(tmp_path_factory.mktemp("cold"), balance="off")
    engine.close()
    return outs


def _same(a, b):
    return all(torch.equal(x, y) for one, other in zip(a, b, strict=True) for x, y in zip(one, other, strict=True))


@settings(max_examples=8, deadline=None)
@given(st.floats(0, 20), st.sampled_from(["12%", "20%", "60%", "100%", "130%"]), st.randoms(use_true_random=False))
def test_not_one_bit_depends_on_beta(tmp_path_factory, expected, beta, hot, rng):
    """Neither on β nor on how it changes under way; and the hot budget holds at every step."""

    def check(engine, _):
        if rng.random() < 0.1:
            engine.balance.split.host = rng.random()
        length = engine._works[(0, 0)].stream.length
        assert engine.settled_ledger().tiers.hot.bytes <= Budget.parse(hot).resolve(GEOMETRY.kv_bytes(length, 1))

    outs, engine = _run(tmp_path_factory.mktemp("cold"), balance=beta, hot_bytes=Budget.parse(hot), before_step=check)
    assert _same(outs, expected)
    engine.close()


@pytest.mark.parametrize("beta", [0.0, 1.0, 1000.0])
def test_on_the_kernels_device_too(tmp_path, expected, beta):
    outs, engine = _run(tmp_path, balance=beta, device="native", hot_bytes=Budget.parse("60%"))
    assert _same(outs, expected)
    ledger = engine.settled_ledger()
    share = ledger.host_scored / (ledger.host_scored + ledger.device_scored)
    assert share == pytest.approx(min(share_of(beta), 0.6), abs=0.2)  # M_c ≤ M_0
    engine.close()


def test_where_all_rows_have_room_they_come_first(tmp_path):
    """A pool of 100 % reads nothing: keys of the host's tiles take only what is left over."""
    for hot, balance, hosted in (("100%", 5.0, False), ("100%", "off", False), ("130%", 5.0, True)):
        _, engine = _run(tmp_path, balance=balance, hot_bytes=Budget.parse(hot))
        assert engine.settled_ledger().cold_read_bytes == 0
        stream = engine._works[(0, 0)].stream
        assert len(stream.hot_pool) == stream.stored
        assert (len(stream.host_tiles) > 0) == hosted
        engine.close()


@pytest.mark.parametrize(("device", "hot"), [("software", "130%"), ("software", "60%"), ("native", "60%")])
def test_the_hosts_share_rises_as_well_as_falls(tmp_path, expected, device, hot):
    """Keys are copied where they lie in memory; else a tile is read per step, and cast anew."""

    def change(engine, step):
        engine.balance.split.host = 0.0 if step < 20 else 1.0

    given = {"balance": 1.0, "hot_bytes": Budget.parse(hot), "device": device}
    outs, engine = _run(tmp_path, before_step=change, **given)
    assert _same(outs, expected)
    engine.settled_ledger()
    for layer in range(2):
        stream = engine._works[(layer, 0)].stream
        assert len(stream.host_tiles) == stream._room.host_tiles > 0
    engine.close()


def test_a_tile_that_cannot_be_read_stays_the_devices(tmp_path, expected):
    def change(engine, step):
        engine.balance.split.host = 0.0 if step < 20 else 1.0
        if step == 20:
            for layer in range(2):
                stream = engine._works[(layer, 0)].stream
                stream.fetch = lambda *_: Unreadable()

    class Unreadable:
        def wait(self):
            raise CorruptRecordError("a tile")

    outs, engine = _run(tmp_path, before_step=change, balance=1.0, device="native")
    assert _same(outs, expected)
    engine.close()


# ---- following the formula


def _simulate(
    balance, rates, *, tokens=8192, hot=0.08, cold=0.02, steps=40, jitter=0.0, asking=0.0, stalled=0.0, seed=0
):
    """Steps of a machine with these rates; the split is obeyed at once.

    asking    seconds that reading and attending cold rows take beside what their bytes do
    stalled   share of the steps in which the device's thread does not run for a while
    """
    counters, shares, rng, now = Counters(), [], random.Random(seed), 0.0
    for _ in range(steps):
        host = int(balance.split.host * tokens)
        slower = [1 + jitter * rng.random() for _ in range(4)]
        balance.scored(host, host / rates.f_c * slower[0])
        hot_rows, cold_rows = int(hot * tokens), int(cold * tokens)
        reading, attending = cold_rows / rates.b_s * slower[2] + asking, cold_rows / rates.b_c + asking
        now += reading
        spent = Spent(
            hot_rows / rates.b_c * slower[1], reading, attending, waited=True, near=hot_rows, asked=now - reading
        )
        balance.spent(cold_rows, spent)
        counters.scanned_tokens += tokens - host
        wait = 5 * tokens / rates.f_s if rng.random() < stalled else 0.0
        counters.seconds += (tokens - host) / rates.f_s * slower[3] + wait
        balance.stepped(counters)
        shares.append(balance.split.host)
    return shares


MACHINES = [Rates(100e6, 50e6, 40e6, 5e6), Rates(20e6, 200e6, 40e6, 20e6), Rates(90e6, 80e6, 10e6, 90e6)]


@pytest.mark.parametrize("machine", MACHINES)
def test_wrong_figures_are_corrected_by_live_ones(machine):
    wrong = Rates(machine.f_c * 3, machine.f_s / 2, machine.b_c, machine.b_s * 4)
    balance = Balance(Split(0.9), wrong, row_bytes=1)
    _simulate(balance, machine)
    assert balance.error < 0.15
    assert balance.rates().f_s == pytest.approx(machine.f_s, rel=0.01)
    assert balance.host_share == pytest.approx(balance.formula_share(), abs=0.05)


@pytest.mark.parametrize("machine", MACHINES)
def test_noise_does_not_make_tiles_flap(machine):
    balance = Balance(Split(0.5), machine, row_bytes=1)
    shares = _simulate(balance, machine, jitter=0.3, steps=200)
    assert len(set(shares[40:])) <= 5


@pytest.mark.parametrize("machine", MACHINES)
def test_a_thread_that_did_not_run_for_a_while_was_not_slow(machine):
    quiet, disturbed = (Balance(Split(0.5), machine, row_bytes=1) for _ in range(2))
    _simulate(quiet, machine, steps=100)
    _simulate(disturbed, machine, steps=100, stalled=0.3)
    assert disturbed.formula_share() == pytest.approx(quiet.formula_share(), abs=0.005)


@pytest.mark.parametrize("start", [0.1, 0.9])
def test_what_few_rows_cost_beside_their_bytes_counts_as_the_devices(start):
    """Found where one row a step took 0.13 ms to attend, and the formula had a microsecond for it."""
    machine = Rates(10e6, 10e6, 40e6, 5e6)
    balance = Balance(Split(start), machine, row_bytes=1)
    shares = _simulate(balance, machine, cold=2 / 8192, hot=0.001, asking=5e-5, steps=200)
    assert balance.error < 0.07  # of which the hysteresis is 1/16
    assert shares[-1] == pytest.approx(0.5 + 1e-4 / (2 * 8192 / 10e6), abs=0.025)


def test_what_one_side_cannot_balance_goes_to_the_other_whole():
    slow_disk = Rates(100e6, 100e6, 100e6, 1e3)
    balance = Balance(Split(0.5), slow_disk, row_bytes=1)
    assert _simulate(balance, slow_disk)[-1] == 1.0
    assert balance.error > 0.9


# ---- where the rates come from


def test_auto_goes_by_a_fresh_calibration_alone(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    cpu, figures = torch.device("cpu"), dict.fromkeys(STEPS, Figure.of([1e9] * 3))

    def opened(**given):
        return open_balance(StoreSettings(cold_dir=tmp_path, **given), GEOMETRY, cpu, POLICY.attended)

    def keep(device, **change):
        where = fingerprint(StoreSettings(cold_dir=tmp_path, device=device), GEOMETRY, cpu)
        other = file.Calibration.now(where.model_copy(update=change), figures, 0.1)
        file.write(other)

    assert opened(device="native") is None
    keep("native")
    assert opened(device="native").split.host == pytest.approx(share_of(1.2 / 1.1), abs=0.01)
    assert opened(device="native", balance="off") is None
    keep("software")
    assert opened() is None  # one call scores both sides'
    assert opened(balance=1.0).split.host == 0.5
    assert caplog.text == ""
    keep("native", cores=99)
    assert opened(device="native") is None
    assert "stale (cores" in caplog.text
    assert "run hillinfer calibrate again" in caplog.text


def test_rows_that_were_there_before_anybody_looked_do_not_slow_the_drive_down():
    balance = Balance(Split(0.5), Rates(1, 1, 1, 1), row_bytes=1)
    for step in range(20):
        balance.scored(100, 1.0)
        reading = 0.1 if step < 5 else 3.0
        balance.spent(10, Spent(0.1, reading, 0.0, waited=step < 5, near=10, asked=step * 4.0))
        balance.stepped(Counters())
    assert balance.rates().b_s == pytest.approx(100)


def test_rows_asked_for_while_others_were_coming_do_not_slow_the_drive_down():
    """Two sequences' reads of 0.1 s each, the second begun with the first: 0.2 s in all."""
    balance = Balance(Split(0.5), Rates(1, 1, 1, 1), row_bytes=1)
    for step in range(20):
        balance.scored(100, 1.0)
        for reading in (0.1, 0.2):
            balance.spent(10, Spent(0.1, reading, 0.0, waited=True, near=10, asked=step * 4.0))
        balance.stepped(Counters())
    assert balance.rates().b_s == pytest.approx(100)


def test_what_the_host_does_of_the_devices_share_counts_as_the_hosts():
    balance = Balance(Split(0.2), Rates(1, 1, 1, 1), row_bytes=1)
    balance.scored(200, 2.0, helping=3.0, of=800)
    balance.stepped(Counters(scanned_tokens=800, seconds=5.0))
    assert balance.last.cpu == balance.last.csd == 5
    assert (balance.rates().f_c, balance.rates().f_s) == (100, 100)
    assert balance.host_share == 0.5
