"""HeteroCache against a plain, slow oracle: who keeps what, who is refilled when, and what it takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import CorruptRecordError, ModelError, ProfileError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.keys import cast_keys
from hillinfer.kv.query import quantise_query
from hillinfer.pipeline.opening import open_engine
from hillinfer.policies import HeteroCache
from hillinfer.policies.drift import DriftMonitor
from tb import qk_model
from tests.profiling.profiles import profile_of, random_profile

SCALING, DIM = 0.25, 16
ROLES = {4: ["Pssa", "vaPs"], 3: ["Pss", "aPs"], 2: ["Ps", "va"]}
STABILITY = {4: [[0.5, 0.3, 0.6, 0.9], [0.1, 0.7, 0.5, 0.4]], 3: [[0.5, 0.4, 0.8], [0.7, 0.5, 0.5]]}
STABILITY[2] = [[0.5, 0.3], [0.2, 0.8]]


def _profile(heads, group=1):
    return profile_of(ROLES[heads], STABILITY[heads], group=group, dim=DIM)


def _top(scores, count):
    """By sorting; of equal ones the newest."""
    order = sorted(range(len(scores)), key=lambda i: (scores[i], i), reverse=True)
    return sorted(order[:count])


@dataclass
class Oracle:
    """One layer and sequence: everything is kept, and what a head may see is a set of positions."""

    policy: HeteroCache
    layer: int
    keys: torch.Tensor
    values: torch.Tensor
    query: torch.Tensor | None = None
    sets: list = field(default_factory=list)
    ordered: dict = field(default_factory=dict)
    windows: dict = field(default_factory=dict)
    references: dict = field(default_factory=dict)
    drifts: list = field(default_factory=list)
    prompt: int = 0
    steps: int = 0

    @property
    def roles(self):
        return self.policy.heads.layers[self.layer]

    def add(self, keys, values):
        self.keys, self.values = torch.cat([self.keys, keys], 1), torch.cat([self.values, values], 1)

    def prefill(self, query, keys, values):
        self.add(keys, values)
        self.query, self.sets = query[:, :, -1], []
        total, length = self.keys.shape[1], keys.shape[1]
        allowed = torch.arange(total)[None] <= torch.arange(total - length, total)[:, None]
        return self.attend(query, allowed.expand(len(keys), 1, -1, -1))[0]

    def attend(self, query, allowed):
        logits = torch.einsum("hgtd,hnd->hgtn", query, self.keys) * SCALING
        logits = logits.masked_fill(~allowed, -torch.inf)
        out = torch.einsum("hgtn,hnd->hgtd", logits.softmax(-1), self.values)
        return out.flatten(0, 1), logits.logsumexp(-1)[:, :, 0].numpy()

    def importance(self, query, head):
        """Pooled by hand: a mean of five, zeros outside; the largest of the group."""
        rows = (query[head] @ self.keys[head, : self.prompt].T * SCALING).softmax(-1).numpy()
        padded = np.pad(rows, ((0, 0), (2, 2)))
        return (sum(padded[:, i : i + self.prompt] for i in range(5)) / 5).max(0)

    def begin(self):
        self.prompt = self.keys.shape[1]
        lengths = self.policy.lengths(self.prompt)[self.layer]
        scores = [self.importance(self.query, head) for head in range(len(lengths))]
        self.sets = [_top(score, count) for score, count in zip(scores, lengths, strict=True)]
        base = self.policy.base(self.prompt)
        self.references = {pivot: set(_top(scores[pivot], base)) for pivot in self.roles.clusters}
        self.windows = {pivot: [] for pivot in self.roles.clusters}
        self.ordered, self.steps = {}, 0

    def decode(self, query, keys, values):
        if not self.sets:
            self.begin()
        for head, positions in self.ordered.items():  # ordered one step ago
            self.sets[head] = positions
        self.ordered = {}
        tokens = self.keys.shape[1]
        seen = [[*positions, *range(self.prompt, tokens)] for positions in self.sets]
        self.add(keys, values)
        allowed = torch.zeros(len(keys), 1, 1, tokens + 1, dtype=torch.bool)
        for head, positions in enumerate(seen):
            allowed[head, ..., [*positions, tokens]] = True
        out, lse = self.attend(query, allowed)
        self.watch(query[:, :, 0], lse)
        self.steps += 1
        return out, seen

    def watch(self, query, lse):
        policy, base = self.policy, self.policy.base(self.prompt)
        for pivot, satellites in self.roles.clusters.items() if policy.retrieve else ():
            scores = self.importance(query, pivot)
            now = set(_top(scores, base))
            self.windows[pivot].append(len(now & self.references[pivot]) / base)
            recent = self.windows[pivot][-policy.window :]
            if len(recent) == policy.window and np.median(recent) < policy.drift_threshold:
                self.references[pivot], self.windows[pivot] = now, []
                self.drifts.append((self.steps, pivot))
                for head in satellites:
                    by = scores if policy.supply == "pivot" else self.near_data(query, lse, head)
                    self.ordered[head] = _top(by, len(self.sets[head]))

    def near_data(self, query, lse, head):
        """The kernel's integers, by its NumPy model."""
        cast = cast_keys(self.keys[:, :-1])  # the new token is not in the tiers yet
        quantised = quantise_query(query.numpy(), SCALING, lse, cast.exponents.min(0), "max")
        enabled = np.zeros(query.shape[:2], bool)
        enabled[head] = True
        integers = (quantised.m, quantised.r, quantised.o)
        scores = qk_model.scores(quantised.q8, cast.integers, cast.exponents, *integers, enabled, "max")
        return scores[: self.prompt]


def _geometry(heads, group, layers=2, dtype=torch.float32):
    return Geometry(layers, heads, group, DIM, dtype)


def _engine(tmp_path, geometry, policy, *, hot="60%", sequences=1, storage="software"):
    settings = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=tmp_path, device=storage)
    sizes = {"sequences": sequences, "max_tokens": 1 << 14, "device": torch.device("cpu")}
    return open_engine(geometry, policy, settings, **sizes)


def _tokens(geometry, count, generator):
    shape = (geometry.kv_heads, geometry.group, count, geometry.head_dim)
    query = torch.randn(shape, generator=generator) * 2
    keys = torch.randn(shape[0], count, shape[3], generator=generator)
    return query, keys, torch.randn(keys.shape, generator=generator)


def _flat(query):
    return query.flatten(0, 1)


@pytest.mark.parametrize("supply", ["pivot", "csd"])
@pytest.mark.parametrize(("heads", "group", "sequences"), [(4, 1, 1), (3, 2, 3), (2, 4, 1)])
def test_every_step_keeps_attends_and_refills_like_the_oracle(tmp_path, heads, group, sequences, supply):
    geometry = _geometry(heads, group)
    policy = HeteroCache(budget="70%", profile=_profile(heads, group), drift=0.62, window=3, supply=supply)
    engine = _engine(tmp_path, geometry, policy, sequences=sequences)
    names = [(layer, sequence) for layer in range(2) for sequence in range(sequences)]
    empty = torch.empty(heads, 0, DIM)
    oracles = {name: Oracle(policy, name[0], empty, empty) for name in names}
    seen = {}
    engine.witness = lambda layer, sequence, sets: seen.update({(layer, sequence): [s.tolist() for s in sets]})
    generator = torch.Generator().manual_seed(heads)
    for chunk in (130, 1, 77, *[0] * 12, 40, *[0] * 12):  # a prompt, steps, a second prompt, steps
        for name in names:
            query, keys, values = _tokens(geometry, max(chunk, 1), generator)
            run = engine.exact if chunk else engine.decode
            out = run(*name, _flat(query), keys, values, SCALING)
            if chunk:
                expected = oracles[name].prefill(query, keys, values)
            else:
                expected, sets = oracles[name].decode(query, keys, values)
                assert seen[name] == sets
            torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-4)
    drifts = sum(len(oracle.drifts) for oracle in oracles.values())
    assert engine.settled_ledger().events["drifts"] == drifts > sequences
    assert engine.ledger.events["refills"] >= drifts
    assert (engine.ledger.device_scored > 0) == (supply == "csd")
    engine.close()


def _topics(geometry, tokens):
    """A prompt whose keys point at topic 0 in its first half and at topic 1 in its second, and a query for each."""
    generator = torch.Generator().manual_seed(0)
    topics = torch.nn.functional.normalize(torch.randn(2, DIM, generator=generator), dim=1) * 6
    query, keys, values = _tokens(geometry, tokens, generator)
    keys = keys * 0.3
    keys[:, : tokens // 2] += topics[0]
    keys[:, tokens // 2 :] += topics[1]
    query[:, :, -1] = topics[0]
    return (query, keys, values), topics


def test_drift_fires_when_the_topic_changes_and_not_while_it_stays(tmp_path):
    """The median of five steps falls with the third on the new topic; the step after that, the satellites are there."""
    geometry, policy = _geometry(4, 1), HeteroCache(budget="60%", profile=_profile(4))
    engine = _engine(tmp_path, geometry, policy)
    prompt, topics = _topics(geometry, 400)
    generator = torch.Generator().manual_seed(1)
    sets = []
    engine.witness = lambda layer, _, each: sets.append(each) if layer == 0 else None
    for layer in range(2):
        engine.exact(layer, 0, _flat(prompt[0]), *prompt[1:], SCALING)
    queries = []
    for step in range(40):
        topic = topics[0 if step < 20 else 1]
        query, keys, values = _tokens(geometry, 1, generator)
        query = topic.expand(query.shape) + query * 0.1
        queries.append(query)
        for layer in range(2):
            engine.decode(layer, 0, _flat(query), keys * 0.3, values, SCALING)
        drifts = engine.settled_ledger().events.get("drifts", 0)
        assert drifts == (0 if step < 22 else 2)  # a pivot in each layer
    assert engine.ledger.events == {"drifts": 2, "refills": 3}
    count = policy.lengths(400)[0, 1]
    logits = (queries[22][0, :, 0] @ prompt[1][0].T * SCALING).softmax(-1)
    best = _top(torch.nn.functional.avg_pool1d(logits[None], 5, 1, 2)[0, 0].tolist(), count)
    satellite = [each[1][:count].tolist() for each in sets]
    assert all(positions == satellite[0] for positions in satellite[:23])
    assert all(positions == best for positions in satellite[23:])
    assert len({*satellite[0]} & {*range(200)}) > 190  # the whole first topic, and then the whole second
    assert len({*best} & {*range(200, 400)}) > 190
    anchor = [each[3].tolist()[: policy.lengths(400)[0, 3]] for each in sets]
    assert all(positions == anchor[0] for positions in anchor)  # anchors never refresh
    engine.close()


def test_a_monitor_waits_for_a_full_window_and_begins_anew():
    def positions(first):
        mask = torch.zeros(100, dtype=torch.bool)
        mask[first : first + 10] = True
        return mask

    monitor = DriftMonitor(positions(0), 5, 0.5)
    assert [monitor.observe(positions(50)) for _ in range(5)] == [False] * 4 + [True]
    assert [monitor.observe(positions(50)) for _ in range(9)] == [False] * 9  # the new place is the reference
    assert [monitor.observe(positions(80)) for _ in range(6)] == [False, False, True, False, False, False]
    nothing = DriftMonitor(torch.zeros(10, dtype=torch.bool), 1, 0.5)
    assert not nothing.observe(torch.zeros(10, dtype=torch.bool))


def _run(tmp_path, geometry, policy, *, prompt=500, steps=40, chunk=None, sequences=1, seed=0, **settings):
    """Outputs and sets of all steps, in which every sequence has its own tokens, and the engine, still open."""
    engine = _engine(tmp_path, geometry, policy, sequences=sequences, **settings)
    outs, sets = [], []
    engine.witness = lambda layer, sequence, each: sets.append((layer, sequence, [s.tolist() for s in each]))
    generators = [torch.Generator().manual_seed(seed + s) for s in range(sequences)]
    for step in range(steps + 1):
        for sequence, generator in enumerate(generators):
            query, keys, values = _tokens(geometry, 1 if step else prompt, generator)
            for layer in range(geometry.layers):
                if step:
                    outs.append(engine.decode(layer, sequence, _flat(query), keys, values, SCALING))
                    continue
                for first in range(0, prompt, chunk or prompt):
                    part = slice(first, first + (chunk or prompt))
                    engine.exact(layer, sequence, _flat(query[:, :, part]), keys[:, part], values[:, part], SCALING)
    return outs, sets, engine


@pytest.mark.parametrize("supply", ["pivot", "csd"])
def test_neither_chunks_nor_tiers_nor_devices_change_a_bit(tmp_path, supply):
    """The device "native" is the kernel's own C."""
    geometry = _geometry(4, 2)
    policy = HeteroCache(budget="60%", profile=_profile(4, 2), drift=0.9, supply=supply)
    runs = [
        _run(tmp_path, geometry, policy, hot=hot, chunk=chunk, storage=storage)
        for hot, chunk, storage in [
            ("60%", None, "software"),
            ("60%", 7, "software"),
            ("60%", 64, "native"),
            ("250%", None, "software"),
        ]
    ]
    for outs, sets, engine in runs:
        assert sets == runs[0][1]
        assert all(torch.equal(a, b) for a, b in zip(outs, runs[0][0], strict=True))
        assert engine.settled_ledger().events["refills"] > 5
    assert runs[0][2].ledger.cold_read_bytes > 0  # from the cold pool
    assert runs[3][2].ledger.cold_read_bytes == 0  # from DRAM
    assert runs[3][2].ledger.selected_hot > 0
    for _, _, engine in runs:
        engine.close()


def test_a_prompt_attended_elsewhere_is_kept_alike(tmp_path):
    geometry, policy = _geometry(4, 2), HeteroCache(budget="60%", profile=_profile(4, 2), drift=0.9)
    outs, sets, engine = _run(tmp_path, geometry, policy, steps=1)
    engine.close()
    engine, generator, seen = _engine(tmp_path, geometry, policy), torch.Generator().manual_seed(0), []
    engine.witness = lambda layer, sequence, each: seen.append((layer, sequence, [s.tolist() for s in each]))
    prompt, step = _tokens(geometry, 500, generator), _tokens(geometry, 1, generator)
    for layer in range(2):
        engine.admit(layer, 0, *prompt, torch.zeros(4, 2, 500), SCALING)
        assert torch.equal(engine.decode(layer, 0, _flat(step[0]), *step[1:], SCALING), outs[layer])
    assert seen == sets
    engine.close()


def test_a_batch_equals_its_members(tmp_path):
    geometry = _geometry(4, 2)
    policy = HeteroCache(budget="60%", profile=_profile(4, 2), drift=0.9)
    together, _, engine = _run(tmp_path, geometry, policy, sequences=3, steps=15)
    engine.close()
    for sequence in range(3):
        alone, _, engine = _run(tmp_path, geometry, policy, seed=sequence, steps=15)
        engine.close()
        mine = [out for step in range(15) for out in together[step * 6 + sequence * 2 : step * 6 + sequence * 2 + 2]]
        assert all(torch.equal(a, b) for a, b in zip(alone, mine, strict=True))


@pytest.mark.parametrize("budget", ["50%", "2000", 2 * 2 * 4 * 2000 * DIM * 4])
def test_the_memory_is_the_budgets_by_measured_bytes(tmp_path, budget):
    """Half of the prompt's KV, however it is said; the rest of what the device holds is what was generated."""
    geometry, tokens = _geometry(4, 1), 4000
    roles, steady = ["Pssa", "assa"], [[0.5, 0.6, 0.7, 0.8], [0.6, 0.5, 0.5, 0.7]]
    roles[1] = "Pssa"
    written = f"{budget} B" if isinstance(budget, int) else budget
    policy = HeteroCache(budget=written, profile=profile_of(roles, steady, dim=DIM))
    _, _, engine = _run(tmp_path, geometry, policy, prompt=tokens, steps=3, chunk=1000)
    tiers = engine.settled_ledger().tiers
    generated = geometry.kv_bytes(3, 1)
    assert tiers.device.bytes - generated == pytest.approx(0.5 * geometry.kv_bytes(tokens, 1), rel=0.02)
    held = [rows for work in engine._works.values() for rows in work.kept.heads]
    assert tiers.device.bytes == sum(2 * len(rows) * DIM * 4 for rows in held)
    whole = [len(held[0]), len(held[4])]  # the pivots
    assert whole == [tokens + 3] * 2
    assert tiers.device.peak_bytes == tiers.device.bytes  # never more, not even when the prompt was over
    engine.close()


def test_memory_on_the_device_is_freed_while_the_next_prompt_is_read(tmp_path):
    geometry = _geometry(4, 1)
    _, _, engine = _run(tmp_path, geometry, HeteroCache(budget="60%", profile=_profile(4), drift=1, window=1), steps=3)
    assert engine.ledger.tiers.device.bytes > 0
    assert all(work.refill is not None for work in engine._works.values())  # on its way, and given up
    query, keys, values = _tokens(geometry, 70, torch.Generator().manual_seed(5))
    for layer in range(2):
        engine.exact(layer, 0, _flat(query), keys, values, SCALING)
    tiers = engine.settled_ledger().tiers
    assert tiers.device.bytes == 0
    held = [work.stream for work in engine._works.values()]
    below = sum(s.hot_pool.nbytes + s.host_tiles.nbytes + s.device_tier.nbytes for s in held)
    assert tiers.hot.bytes == below
    assert all(stream.length == 573 for stream in held)  # generated tokens are a part of the context
    engine.close()


def test_everything_in_the_budget_is_the_full_cache(tmp_path):
    geometry = _geometry(3, 2)
    exact, _, engine = _run(tmp_path, geometry, HeteroCache(budget="100%", profile=_profile(3, 2)), steps=20)
    assert engine.settled_ledger().events == {}
    engine.close()
    empty = torch.empty(3, 0, DIM)
    oracle = Oracle(HeteroCache(budget="100%", profile=_profile(3, 2)), 0, empty, empty)
    generator = torch.Generator().manual_seed(0)
    for step in range(21):
        query, keys, values = _tokens(geometry, 1 if step else 500, generator)
        oracle.add(keys, values)
        if step:
            every = torch.ones(3, 1, 1, 500 + step, dtype=torch.bool)
            torch.testing.assert_close(exact[2 * step - 2], oracle.attend(query, every)[0], atol=1e-5, rtol=1e-4)


def test_ablations(tmp_path):
    """The paper's Table 4: the same budget for every compressed head; no retrieval."""
    geometry, profile = _geometry(4, 1), _profile(4)
    policy = HeteroCache(budget="60%", profile=profile, drift=0.99, window=1)
    even = replace(policy, allocate=False)
    compressed = policy.lengths(500) < 500
    assert len(set(even.lengths(500)[compressed])) == 1
    assert len(set(policy.lengths(500)[compressed])) > 1
    assert even.lengths(500).sum() == pytest.approx(policy.lengths(500).sum(), rel=0.01)
    _, sets, engine = _run(tmp_path, geometry, replace(policy, retrieve=False), steps=8)
    engine.close()
    assert engine.ledger.events == {}
    assert engine.ledger.cold_read_bytes == 0
    first = sets[0][2]
    for layer, _, each in sets:
        if layer == 0:
            assert [positions[: len(kept)] for positions, kept in zip(each, first, strict=True)] == first


@pytest.mark.parametrize(("kv_format", "bits", "error"), [("int8", 8, 0.04), ("int4", 4, 0.4)])
@pytest.mark.parametrize("supply", ["pivot", "csd"])
def test_rounded_rows_take_less_and_change_little(tmp_path, kv_format, bits, error, supply):
    geometry = Geometry(2, 4, 1, 64, torch.float32)
    profile = profile_of(ROLES[4], STABILITY[4], dim=64)
    policy = HeteroCache(budget="60%", profile=profile, drift=0.8, supply=supply)
    exact, _, engine = _run(tmp_path, geometry, policy, steps=10)
    whole = engine.settled_ledger().tiers.device.bytes, engine.ledger.tiers.cold.bytes
    engine.close()
    rounded, _, engine = _run(tmp_path, geometry, replace(policy, kv_format=kv_format), steps=10)
    tiers = engine.settled_ledger().tiers
    assert engine.ledger.events["refills"] > 0
    assert tiers.device.bytes == whole[0] * (bits / 8 * 128 + 16) / 512  # two float16 per 32 dimensions
    assert tiers.cold.bytes == whole[1]  # below, rows stay as they are
    # Pivots decide by rounded keys, so sets differ a little: the first step is before that.
    torch.testing.assert_close(rounded[0], exact[0], atol=error, rtol=0)
    engine.close()


def test_what_cannot_be_served(tmp_path):
    profile = _profile(4)
    with pytest.raises(SettingError, match=r"undefined, F = 3: .* more than 37.5%"):
        _engine(tmp_path, _geometry(4, 1), HeteroCache(budget="30%", profile=profile))
    engine = _engine(tmp_path, _geometry(4, 1), HeteroCache(budget="100", profile=profile))
    engine.expect(200)
    with pytest.raises(SettingError, match="undefined, F = 3"):
        engine.expect(1000)
    engine.close()
    with pytest.raises(ModelError, match="one KV head per layer"):
        _engine(tmp_path, _geometry(1, 4), HeteroCache(profile=profile))
    with pytest.raises(ProfileError, match="2 layers of 4 KV heads, and this model has 3 of 4"):
        _engine(tmp_path, _geometry(4, 1, layers=3), HeteroCache(profile=profile))
    with pytest.raises(SettingError, match="hillinfer profile"):
        _engine(tmp_path, _geometry(4, 1), HeteroCache())
    with pytest.raises(ProfileError, match="hillinfer profile"):
        HeteroCache(profile=tmp_path / "none.json").fitted(_geometry(4, 1), 1)
    stranger = random_profile(seed=3)
    with pytest.raises(ProfileError, match="another model"):
        HeteroCache(profile=stranger).for_model(random_profile(seed=4).model)
    for wrong in ({"window": 0}, {"kernel": 4}, {"supply": "ssd"}, {"kv_format": "int2"}, {"drift": 1.5}):
        with pytest.raises(SettingError, match=next(iter(wrong))):
            HeteroCache(**wrong)


def test_a_flipped_bit_stops_the_step_that_would_have_installed_it(tmp_path):
    geometry = _geometry(4, 1)
    policy = HeteroCache(budget="60%", profile=_profile(4), drift=1, window=2)
    _, _, engine = _run(tmp_path, geometry, policy, steps=1)
    engine.csd.flush()
    with open(f"/proc/self/fd/{engine.csd.rows.logs[0].file.fd}", "r+b", buffering=0) as file:
        file.write(bytes(448 * geometry.row_bytes))
    generator = torch.Generator().manual_seed(9)

    def step():
        query, keys, values = _tokens(geometry, 1, generator)
        for layer in range(2):
            engine.decode(layer, 0, _flat(query), keys, values, SCALING)

    step()  # attends to what the device holds, and orders a refill
    with pytest.raises(CorruptRecordError, match="layer 0, sequence 0, tokens"):
        step()
    engine.close()  # layer 1's refill is still on its way
