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
    for engine in bench.engines:
        for row_bytes in (768, 65536):
            figure = bench.random(engine, row_bytes, 8)
            assert figure.per_s == figure.requests_per_s > 0
            assert figure.request_kib >= row_bytes / 1024
        assert bench.sequential(engine, 4096).request_kib > 100
    rows, planes = (bench.layout("pool", 1536, layout) for layout in ("rows", "planes"))
    assert rows.requests_per_s / rows.per_s == pytest.approx(1)
    assert planes.requests_per_s / planes.per_s == pytest.approx(2)
    apart, merged = (bench.gaps("pool", 1536, gap) for gap in (0, 32768))
    assert merged.requests_per_s / merged.per_s < 0.6 * apart.requests_per_s / apart.per_s
    found = [rows, planes, apart, merged, *(bench.random("pool", each, io.DEPTH) for each in (768, 16384))]
    result = json.loads(json.dumps(io.as_dict(found, {"size": 1})))
    assert set(result["summary"]) == {"gaps_merged_over_not_1536", "rows_over_planes_1536"}
    assert [each["engine"] for each in result["costs"]] == ["pool"]
    assert [table.row_count for table in tables(found, direct=True)] == [2, 4]


def test_a_size_that_is_none_is_told(capsys):
    assert run(["bench", "io", "--size", "much"]) == 2
    assert "write 2GiB" in capsys.readouterr().err
