"""The thread pool: the same scores by any number of threads, and an end to it in every process."""

import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from hillinfer import _native
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.scoring import pack

ROOT = Path(__file__).resolve().parents[2]


def _scan(key_format: str, tokens: int = 3000) -> tuple[_native.Query, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (2, 3, 64)
    query = QuantisedQuery(
        rng.integers(-127, 128, shape).astype(np.int8),
        *(rng.integers(low, high, shape[:2]).astype(np.int32) for low, high in ((0, 65536), (10, 20), (-500, 500))),
        "max",
        (0, 1),
    )
    integers = rng.integers(-7, 8, (tokens, 2, 64)).astype(np.int8)
    tiles = pack(integers.astype(np.float16) if key_format == "fp16" else integers, key_format)
    return query.native_for(key_format), tiles, rng.integers(-2, 5, (len(tiles), 2)).astype(np.int8)


def _scores(scan: tuple[_native.Query, np.ndarray, np.ndarray], pool: _native.ThreadPool | None) -> np.ndarray:
    query, tiles, exponents = scan
    scores = np.zeros(len(tiles) * 64, np.int16)
    query.score(tiles, exponents, scores, pool)
    return scores


@pytest.mark.parametrize("key_format", ["int8", "int4", "fp16"])
def test_scores_do_not_depend_on_the_number_of_threads(key_format):
    scan = _scan(key_format)
    alone = _scores(scan, None)
    for threads in (1, 2, 3, 8):
        pool = _native.ThreadPool(threads)
        assert pool.threads == threads
        for _ in range(5):
            np.testing.assert_array_equal(_scores(scan, pool), alone)


def test_two_callers_of_one_pool_both_get_their_scores():
    scan, pool, right = _scan("int8"), _native.ThreadPool(2), []
    alone = _scores(scan, None)

    def call() -> None:
        right.append(all((_scores(scan, pool) == alone).all() for _ in range(50)))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 3


_FEW = """
import resource
from pathlib import Path

from hillinfer import _native
from tests.kv.test_threads import _scan, _scores

scan = _scan("int8")
alone = _scores(scan, None)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20),) * 2)  # stacks of 8 MiB
pool = _native.ThreadPool(100)
assert 1 <= pool.threads < 100, pool.threads
assert (_scores(scan, pool) == alone).all()
"""


def test_where_the_system_gives_no_more_threads_those_that_are_there_do_the_work():
    done = subprocess.run([sys.executable, "-c", _FEW], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _in_child(scan, pool, answer) -> None:
    answer.put(_scores(scan, pool))


def test_a_forked_process_scores_without_the_threads_it_does_not_have():
    scan, pool = _scan("int8"), _native.ThreadPool(3)
    alone = _scores(scan, pool)
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=_in_child, args=(scan, pool, answer))
    child.start()
    np.testing.assert_array_equal(answer.get(timeout=60), alone)
    child.join(60)
    assert child.exitcode == 0


def test_pools_come_and_go():
    for threads in (1, 2, 5) * 10:
        assert _native.ThreadPool(threads).threads == threads
    with pytest.raises(ValueError, match="at least 1"):
        _native.ThreadPool(0)


def test_reading_memory_reads_all_of_it():
    words = np.random.default_rng(0).integers(0, 2**63, 8 * 10_001).astype(np.uint64)
    for threads in (1, 2):
        for parts in (False, True):
            assert _native.ThreadPool(threads).read_words(words, parts) == int(words.sum(dtype=np.uint64))
