"""Methods on boxes where one thing takes time: closed forms, the balance of the formula, and what holds for all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.calibration.rates import Rates, Shares, beta_p2p, beta_two_hop, share_of
from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.simulation import methods, shape
from hillinfer.simulation.hardware import Number
from hillinfer.simulation.methods.full import Full
from hillinfer.simulation.methods.hillinfer import HillInfer
from hillinfer.simulation.methods.kept import Kept
from hillinfer.simulation.methods.retrieval import Retrieval
from hillinfer.simulation.run import simulate
from hillinfer.simulation.trace import LayerStep, Trace
from tests.simulation.boxes import SHAPE, box, here, way

TOKENS = 100_000
WORK = LayerStep(TOKENS, 20_000, 80_000, 10_000, 7_000, 2_000, 1_000, 2_500, 500, 64)
ROW = SHAPE.row_bytes
KEYS = TOKENS * SHAPE.key_elements


def trace(work=WORK, steps=1):
    return Trace("toy", "hillinfer", [[work] * SHAPE.layers] * steps)


def seconds(hardware, method, work=WORK):
    """Of a step's layer."""
    return simulate(hardware, SHAPE, method, trace(work)).seconds / SHAPE.layers


def test_one_resource_takes_bytes_over_rate() -> None:
    rate = 1e6
    whole = TOKENS * ROW / rate
    assert seconds(box(pcie__bandwidth=rate), Full("dram")) == pytest.approx(whole)
    assert seconds(box(gpu__bandwidth=rate), Kept(budget=0.1)) == pytest.approx(
        (10_001 * ROW + SHAPE.layer_weights + SHAPE.head_weights / 2) / rate
    )
    alone = HillInfer(ahead=False)
    assert seconds(box(cpu__score=rate), alone) == pytest.approx(0.2 * KEYS / rate)
    assert seconds(box(smartssd__scan=rate), alone) == pytest.approx(0.8 * KEYS / rate)
    assert seconds(box(smartssd__scan=rate, smartssd__cards=2), alone) == pytest.approx(0.4 * KEYS / rate)
    assert seconds(box(smartssd__drive__read=rate), alone) == pytest.approx(2_500 * ROW / rate)
    assert seconds(box(smartssd__drive__iops=1e3), alone) == pytest.approx(1.0)
    one_after_another = {"smartssd__drive__request": 1e-3, "smartssd__drive__read": rate, "smartssd__drive__iops": 1e3}
    assert seconds(box(**one_after_another), alone) == pytest.approx(1.0 + 2_500 * ROW / rate)
    assert seconds(box(smartssd__p2p=rate), HillInfer(ahead=False, streamed=True)) == pytest.approx(0.8 * KEYS / rate)
    assert seconds(box(smartssd__p2p=rate), alone) < 1e-6
    assert seconds(box(smartssd__launch=0.5), alone) == pytest.approx(0.5)
    assert seconds(box(cpu__gather=rate), alone) == pytest.approx(7_000 * ROW / rate)
    bounds = Retrieval(index=0.1, chunk=10, budget=0.1)
    assert seconds(box(ssd__iops=1e3), bounds) == pytest.approx(1.0)
    assert seconds(box(cpu__score=rate), bounds) == pytest.approx(0.1 * KEYS * SHAPE.kv_bytes / rate)


def test_two_parallel_paths_take_the_longer() -> None:
    both = box(cpu__score=1e6, smartssd__scan=2e6)
    assert seconds(both, HillInfer(ahead=False)) == pytest.approx(max(0.2 * KEYS / 1e6, 0.8 * KEYS / 2e6))


def test_the_next_layer_comes_while_one_computes() -> None:
    """Two layers of each kind of work, one second each: 2 + 2 apart, and 3 when the second's comes meanwhile."""
    products = SHAPE.layer_weights
    hardware = box(smartssd__scan=0.8 * KEYS, gpu__bandwidth=products)
    apart = simulate(hardware, SHAPE, HillInfer(ahead=False), trace()).seconds
    ahead = simulate(hardware, SHAPE, HillInfer(), trace()).seconds
    head = (SHAPE.head_weights + 2 * 10_001 * ROW) / products
    assert apart == pytest.approx(4 + head)
    assert 3 < ahead < apart - 0.5


def test_without_history_rows_that_move_stand_in_the_way() -> None:
    hardware = box(smartssd__drive__write=1e6)
    assert seconds(hardware, HillInfer(ahead=False, hkm=False)) == pytest.approx(500 * ROW / 1e6, rel=0.2)
    assert seconds(hardware, HillInfer(ahead=False)) < 1e-6


def test_a_row_that_is_attended_and_moves_is_read_once() -> None:
    hardware, method = box(smartssd__drive__iops=1e3), HillInfer(ahead=False, hkm=False)
    assert seconds(hardware, method) == pytest.approx(1_000 / 1e3)  # 500 of the 2,000 cold rows move
    more = replace(WORK, moved_rows=2_600)
    assert seconds(hardware, method, more) == pytest.approx((1_000 + 600) / 1e3)


def test_weights_that_do_not_fit_come_over_the_link() -> None:
    weights, taken = SHAPE.weights + SHAPE.head_weights, 1e3 + SHAPE.activations(512)
    half = box(pcie__bandwidth=1e6, gpu__memory=weights / 2 + 10 * SHAPE.token_bytes + taken, gpu__reserved=1e3)
    work = LayerStep(10, attended=10)
    assert simulate(half, SHAPE, Full("device"), trace(work)).seconds == pytest.approx(SHAPE.weights / 2 / 1e6)


def test_a_gpu_that_its_programs_fill_holds_no_weights() -> None:
    full = box(pcie__bandwidth=1e6, gpu__memory=1e9, gpu__reserved=2e9)
    work = LayerStep(10, attended=10)
    kv = SHAPE.layers * 10 * ROW
    assert simulate(full, SHAPE, Full("dram"), trace(work)).seconds == pytest.approx((SHAPE.weights + kv) / 1e6)


@pytest.mark.parametrize(("two_hop", "formula"), [(False, beta_p2p), (True, beta_two_hop)])
@pytest.mark.parametrize(("f_c", "f_s", "b_c", "b_s"), [(4e9, 1e9, 8e9, 2e9), (1e9, 3e9, 2e9, 0.5e9)])
def test_the_balance_of_the_formula_is_the_minimum(two_hop, formula, f_c, f_s, b_c, b_s) -> None:
    """algorithms.md §1, APP: speeds in bytes of KV rows; a quarter of a row's bytes are scanned INT8 keys."""
    alpha, scanned = 0.1, SHAPE.key_elements / SHAPE.row_bytes
    hardware = box(cpu__score=f_c * scanned, smartssd__scan=f_s * scanned, cpu__gather=b_c, smartssd__drive__read=b_s)
    if two_hop:
        hardware = hardware.changed(pcie__bandwidth=Number(b_c, "test"), cpu__gather=Number(1e18, "test"))
    method = HillInfer(ahead=False, global_set=False, two_hop=two_hop)

    def at(share):
        """A step when the host owns that share, and each side's selected rows lie with it."""
        host = round(share * TOKENS)
        hot, cold = round(alpha * host), round(alpha * (TOKENS - host))
        return seconds(hardware, method, LayerStep(TOKENS, host, TOKENS - host, hot + cold, hot, cold, cold, cold))

    best = share_of(formula(Rates(f_c, f_s, b_c, b_s), Shares.even(alpha)))
    swept = {step / 100: at(step / 100) for step in range(101)}
    lowest = min(swept, key=swept.__getitem__)
    assert lowest == pytest.approx(best, abs=0.08 if two_hop else 0.011)  # with two hops both paths share a link
    assert at(best) <= min(swept.values()) * (1.10 if two_hop else 1.001)


RATES = {
    "gpu__bandwidth": 1e12,
    "cpu__score": 3e10,
    "cpu__gather": 1e10,
    "dram__bandwidth": 6e10,
    "pcie__bandwidth": 2e10,
    "ssd__read": 3e9,
    "ssd__iops": 5e5,
    "smartssd__scan": 1e10,
    "smartssd__p2p": 3e9,
    "smartssd__drive__read": 3e9,
    "smartssd__drive__iops": 5e5,
}


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(RATES)), st.floats(1.1, 10), st.sampled_from(sorted(methods.METHODS)))
def test_nothing_gets_slower_by_a_faster_part(part, factor, name) -> None:
    before, after = box(**RATES), box(**RATES | {part: RATES[part] * factor})
    method = methods.named(name)
    slow, fast = (simulate(each, SHAPE, method, trace(steps=2)).seconds for each in (before, after))
    assert fast <= slow * (1 + 1e-2)  # what is earlier may meet others on a shared part: a little, not more


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 1), st.floats(1.1, 4))
def test_each_token_is_scored_once_whoever_does_it(share, factor) -> None:
    """The seconds both sides work add up to every key once, whatever the split and the size of the work."""
    rate, work = 1e6, WORK.times(factor)
    assert work.scored == work.tokens
    hardware = box(cpu__score=rate, smartssd__scan=rate)
    result = simulate(hardware, SHAPE, HillInfer(host_share=share), trace(work))
    worked = result.busy.get("cpu", 0.0) * hardware.cpu.cores + result.busy.get("fpga", 0.0)
    assert worked == pytest.approx(SHAPE.layers * work.tokens * SHAPE.key_elements / rate, rel=1e-6)


def test_a_machine_that_does_all_by_itself() -> None:
    """Without a GPU and a card one thread scores, selects and attends, the drive beside it."""
    hardware = box(gpu=False, card=False, cpu__score=KEYS, cpu__select=TOKENS, cpu__attend=8_001 * ROW, ssd__iops=250)
    assert seconds(hardware, HillInfer()) == pytest.approx(2 + 4 + 2_000 / 8_001)  # reads hide the attention


def test_on_the_processor_each_policy_takes_what_was_measured_of_it() -> None:
    hardware = here(
        ways={
            "h2o": way(layer=2, attend=ROW),
            "quest": way(layer=3, token=1e-3, row=1e-2, attend=10 * ROW),
            "infinigen": way(layer=3),
        },
        whole=way(layer=1, attend=TOKENS * ROW),
    )
    assert seconds(hardware, methods.named("h2o"), LayerStep(50, attended=9)) == pytest.approx(2 + 10 + 1)
    kept = LayerStep(1000, attended=400, hot_rows=300, head_rows=100)
    assert seconds(hardware, methods.named("quest"), kept) == pytest.approx(3 + 1 + 4 + 10.1)
    all_together = LayerStep(1000, attended=1000, hot_rows=900, head_rows=100)  # by its sets, which are a tenth each
    assert seconds(hardware, methods.named("quest"), all_together) == pytest.approx(3 + 1 + 10 + 10.1)
    everything = LayerStep(TOKENS, attended=TOKENS)
    for name in ("quest", "infinigen", "hillinfer"):
        assert seconds(hardware, methods.named(name), everything) == pytest.approx(1 + 1)
    with pytest.raises(SettingError, match="what attending takes by leoam was not measured"):
        seconds(hardware, methods.named("leoam"), kept)


def test_what_is_foretold_is_read_while_a_layer_works() -> None:
    """Choosing takes 1 s and the read 2 s: the second layer's is there when the first, of 4 s, is over."""
    cold = LayerStep(1000, attended=200, cold_rows=200, cold_requests=2, read_rows=200)
    hardware = here(ways={"infinigen": way(layer=1), "quest": way(layer=1)}, ssd__iops=1.0)
    slow = hardware.changed(cpu__linear=Number(SHAPE.layer_weights / 4, "test"))
    guesses = Retrieval(index=0.2, ahead=True, policy="infinigen")
    asked, foretold = (
        simulate(slow, SHAPE, method, trace(cold)).seconds for method in (methods.named("quest"), guesses)
    )
    assert asked - foretold == pytest.approx(2.0, rel=0.05)
    ahead = replace(
        cold, host_scored=1000, ahead_rows=200, ahead_requests=2, ahead_hits=200, cold_requests=0, read_rows=0
    )
    guessing = hardware.changed(software__guess_layer=Number(0.5, "test"))
    found = simulate(guessing, SHAPE, HillInfer(lookahead=True), trace(ahead)).seconds
    assert found == pytest.approx(2.5, rel=0.01)  # a guess, and its read; nothing is read ahead for the first layer

    with pytest.raises(SettingError, match="recorded with lookahead, and is timed without"):
        simulate(guessing, SHAPE, HillInfer(), trace(ahead))


def test_what_is_attended_whole_comes_piece_by_piece() -> None:
    """Four pieces of 4 MiB; what is cold in one is read while the one before is attended: two reads share the drive."""
    tokens = 4 * 4032
    work = LayerStep(tokens, attended=tokens, hot_rows=tokens // 2, cold_rows=tokens // 2, cold_requests=4)
    rates = {"ssd__iops": 1.0}
    slow = here(ways={"infinigen": way(layer=7)}, whole=way(attend=tokens / 4 * ROW), **rates)
    assert seconds(slow, HillInfer(), work) == pytest.approx(2 + 4)  # the first read is waited for
    assert seconds(slow.changed(ssd__iops=Number(0.5, "test")), HillInfer(), work) == pytest.approx(4 * 2 + 2)
    nothing_measured = box(gpu=False, card=False, ssd__iops=1.0)
    assert seconds(nothing_measured, HillInfer(), work) == pytest.approx(4)
    mine = LayerStep(tokens, 0, tokens, 1000, 600, 400, 1, 400)  # HillInfer's, of which infinigen attends to all
    whole = Retrieval(index=0.2, whole=SHAPE.layers, ahead=True, in_dram=1.0, policy="infinigen")
    assert seconds(slow, whole, mine) == pytest.approx(4)
    assert seconds(slow, replace(whole, in_dram=0.0), mine) > 4 + 1
    ahead = seconds(slow, replace(whole, whole=0), mine)
    assert ahead == pytest.approx(7 + 1 / 2, rel=0.01)  # the second layer's read is in time


def test_a_box_with_programs_can_be_looked_up() -> None:
    first, again, other = (here(ways={name: way(layer=2)}) for name in ("h2o", "h2o", "quest"))
    assert len({first, again, other}) == 2


def test_what_does_not_fit() -> None:
    work = LayerStep(1000, attended=100)
    small = box(gpu__memory=SHAPE.token_bytes * 999)
    with pytest.raises(MemoryBudgetError, match="GPU"):
        simulate(small, SHAPE, Full("device"), trace(work))
    with pytest.raises(MemoryBudgetError, match="memory"):
        simulate(box(dram__capacity=SHAPE.token_bytes * 999), SHAPE, Full("dram"), trace(work))
    with pytest.raises(MemoryBudgetError, match="drive"):
        simulate(box(smartssd__drive__capacity=10), SHAPE, HillInfer(), trace(work))
    in_dram = 0.2 * SHAPE.token_bytes + 0.5 * SHAPE.layers * SHAPE.key_elements  # the pool, and the host's INT8 keys
    simulate(box(dram__capacity=1001 * in_dram), SHAPE, HillInfer(host_share=0.5), trace(work))
    with pytest.raises(MemoryBudgetError, match="memory"):
        simulate(box(dram__capacity=999 * in_dram), SHAPE, HillInfer(host_share=0.5), trace(work))
    with pytest.raises(SettingError, match="do not fit into the memory of 1 SmartSSD"):
        simulate(box(smartssd__memory=10), SHAPE, HillInfer(), trace(work))
    with pytest.raises(SettingError, match="scale it"):
        simulate(box(), shape.named("opt-6.7b"), HillInfer(), trace(work))


def test_the_timeline_is_chromes(tmp_path) -> None:
    result = simulate(box(**RATES), SHAPE, HillInfer(), trace())
    path = tmp_path / "timeline.json"
    result.write_timeline(path)
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {"score", "read", "attend"} <= {event["name"] for event in events}
    assert all(event["ts"] >= 0 and event["ts"] + event["dur"] <= result.seconds * 1.5e6 for event in events)
    assert sum(result.busy_shares.values()) > 0


def test_names_that_are_none() -> None:
    with pytest.raises(SettingError, match="did you mean 'leoam'"):
        methods.named("leoma")
    with pytest.raises(SettingError, match=r"did you mean 'opt-6\.7b'"):
        shape.named("opt-6.7")
    for wrong in (lambda: Full("disk"), lambda: Kept(budget=2), lambda: Retrieval(0), lambda: HillInfer(key_bytes=0)):
        with pytest.raises(SettingError):
            wrong()


@pytest.mark.parametrize("method", [Full("drive"), Kept(budget=0.5, tier="drive"), Retrieval(index=0.1)])
def test_room_is_looked_for_on_the_drive_that_a_method_uses(method) -> None:
    seconds(box(smartssd__drive__capacity=1.0), method)
    with pytest.raises(MemoryBudgetError, match="of drive"):
        seconds(box(ssd__capacity=1.0), method)
    seconds(box(ssd__capacity=1.0), HillInfer())
    with pytest.raises(MemoryBudgetError, match="of drive"):
        seconds(box(smartssd__drive__capacity=1.0), HillInfer())
