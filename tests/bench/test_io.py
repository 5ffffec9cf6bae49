"""The benchmark of reads and writes on a small file: what it measures, not how fast it is."""

from __future__ import annotations

import contextlib
import json

import pytest

from hillinfer.bench import io
from hillinfer.cli import run
from hillinfer.cli.bench_io import tables


@pytest.fixture
def bench(tmp_path):
    said = []
    made = io.Bench(tmp_path, create=False, size=40 << 20, seconds=0.001, say=said.append)
    with contextlib.closing(made):
        made.write()
        yield made
        assert all(said)


def test_every_row_of_every_kind_is_checked_and_counted(bench):
    found = []
    for row_bytes in (768, 65536):
        found += bench.random(row_bytes, (8, io.DEPTH))
        assert [each.depth for each in found[-2 * len(bench.engines) :: len(bench.engines)]] == [8, io.DEPTH]
    assert all(each.requests_per_s == pytest.approx(each.per_s) for each in found)
    assert all(each.request_kib >= each.row_bytes / 1024 for each in found)
    assert all(each.request_kib > 100 for each in bench.sequential(4096))
    rows, planes = bench.layout(1536)
    assert rows.requests_per_s / rows.per_s == pytest.approx(1)
    assert planes.requests_per_s / planes.per_s == pytest.approx(2)
    apart, *merged = bench.gaps(1536)
    assert merged[-1].requests_per_s / merged[-1].per_s < 0.6 * apart.requests_per_s / apart.per_s
    found += [rows, planes, apart, *merged]
    result = json.loads(json.dumps(io.as_dict(found, {"size": 1})))
    assert {"gaps_merged_over_not_1536", "rows_over_planes_1536"} <= set(result["summary"])
    assert [table.row_count for table in tables(found, direct=True)] == [2 * len(bench.engines), 2 + len(io.GAPS)]


def test_a_size_that_is_none_is_told(capsys):
    assert run(["bench", "io", "--size", "much"]) == 2
    assert "write 2GiB" in capsys.readouterr().err
