"""The native library from Python: found or said how to get, and nothing reaches it that it could not take."""

from __future__ import annotations

import dataclasses
import subprocess
import threading

import numpy as np
import pytest

from hillinfer.csd import libraries, native
from hillinfer.csd.abi import Launch, Layout, aligned, unpack_block
from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import DeviceError
from tests.csd.conftest import GEOMETRY, some_query
from tests.hls.cases import random_case
from tests.hls.conftest import library as library


@pytest.fixture
def case():
    return random_case(1, "int8", 2, 3, 64, 100)


@pytest.fixture
def arrays(case):
    (query,) = case.layout.pack_query(case.query)
    return [query, case.layout.pack_keys(case.keys), case.layout.pack_exponents(case.exponents)]


def test_one_call_scores_a_launch(library, case, arrays, monkeypatch):  # noqa: ARG001
    monkeypatch.setenv("HILLINFER_NATIVE", str(native.find_library()))
    slots = native.score(*arrays, *case.launch.scalars)
    assert slots.shape == (1, 1040)
    assert slots.tobytes() == case.expected()
    np.testing.assert_array_equal(unpack_block(slots[0], case.tag).scores, case.scores())


@pytest.mark.parametrize("reduce", ["max", "sum"])
def test_the_software_device_gives_the_same_score_blocks(library, filled, reduce):
    stream = Stream(1, 0)
    filled.append(stream, 64 * 40)
    query, run = some_query(reduce=reduce), Run(64 * 3, 64 * 35)
    blocks = list(filled.device.submit(stream, query, [run]))
    layout = Layout("int8", GEOMETRY.kv_heads, GEOMETRY.group, GEOMETRY.head_dim)
    keys, (packed,) = filled.keys[stream], layout.pack_query(query)
    launch = Launch(run.tokens, run.first, layout.shape, layout.format(reduce), -32768, 5)
    slots = library.score(
        packed,
        layout.pack_keys(keys.integers[run.first : run.first + run.tokens]),
        layout.pack_exponents(keys.exponents[run.first // 64 : (run.first + run.tokens) // 64]),
        launch,
    )
    assert len(blocks) == len(slots) == 3
    for block, slot in zip(blocks, slots, strict=True):
        ours = unpack_block(slot, 5)
        assert (ours.first, ours.scanned, ours.index, ours.of) == (block.first, block.scanned, block.index, block.of)
        np.testing.assert_array_equal(ours.offsets, block.offsets)
        np.testing.assert_array_equal(ours.scores, block.scores)


def test_threads_launch_at_the_same_time(library):
    cases = [random_case(seed, "fp16_int8", 2, 3, 64, 1500) for seed in range(4)]
    wrong = []

    def work(case):
        for exact in (True, False) * 3:
            if case.run(library, exact_depth=exact) != case.expected():
                wrong.append(case)

    threads = [threading.Thread(target=work, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_misaligned_or_short_buffer_is_refused(library, case, arrays, which):
    good = arrays[which]
    arrays[which] = good[:-1]
    with pytest.raises(DeviceError, match=f"has {good.size - 64} bytes, the launch reads {good.size}"):
        library.score(*arrays, case.launch)
    arrays[which] = np.concatenate([aligned(1), good]).reshape(-1)[4 : 4 + good.size]
    assert arrays[which].ctypes.data % 64
    with pytest.raises(DeviceError, match="not at a multiple of 64"):
        library.score(*arrays, case.launch)
    arrays[which] = np.repeat(good, 2, axis=0)[::2]
    with pytest.raises(DeviceError, match="one contiguous stretch"):
        library.score(*arrays, case.launch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": -1}, "0 to 1048576 tokens, not -1"),
        ({"tokens": (1 << 20) + 1}, "split it into several"),
        ({"min_score": 1 << 31}, "min_score is 2147483648, which is no 32-bit signed number"),
        ({"tag": -(1 << 31) - 1}, "tag is"),
        ({"first": 1 << 40}, "first is"),
        ({"shape": 0}, "0 beats per group, not 1 to 8"),
        ({"shape": 0x10109}, "9 beats per group"),
        ({"shape": 0x1010101}, "257 groups per row"),
        ({"shape": 0x200108}, None),
        ({"shape": 0x210108}, "beats per row times passes exceed 256"),
        ({"shape": 0x10401}, r"2\^4 banks, not 2\^1 to 2\^3"),
        ({"shape": 0x10141}, "shape has bits that mean nothing"),
        ({"shape": 0x10112}, "two heads share one beat"),
        ({"shape": 0x10121, "format": 0}, "stored formats"),
        ({"format": 6}, "format has bits that mean nothing"),
    ],
)
def test_an_impossible_launch_is_refused(case, change, message):
    if message is None:
        dataclasses.replace(case.launch, **change)
    else:
        with pytest.raises(DeviceError, match=message):
            dataclasses.replace(case.launch, **change)


def test_a_missing_library_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("HILLINFER_NATIVE", raising=False)
    monkeypatch.setattr(libraries.hillinfer, "__path__", [str(tmp_path)])
    monkeypatch.setattr(libraries, "_SOURCES", tmp_path)
    with pytest.raises(DeviceError, match="run `make csim`, or name its folder in HILLINFER_NATIVE"):
        native.find_library()
    monkeypatch.setenv("HILLINFER_NATIVE", str(tmp_path))
    with pytest.raises(DeviceError, match="correct HILLINFER_NATIVE"):
        native.find_library()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int something;", "is not the native kernel library: build it again"),
        ("int qk_abi_version() { return 7; }", "speaks version 7 of the kernel's ABI, this package version 1"),
    ],
)
def test_another_library_is_refused(tmp_path, source, message):
    (tmp_path / "other.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / native.LIBRARY], check=True)
    with pytest.raises(DeviceError, match=message):
        native.Library(tmp_path / native.LIBRARY)


def test_a_file_that_is_no_library_is_refused(tmp_path):
    (tmp_path / native.LIBRARY).write_text("text")
    with pytest.raises(DeviceError, match="build it again"):
        native.Library(tmp_path / native.LIBRARY)
