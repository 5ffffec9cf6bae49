"""One source, four builds: the project's headers and AMD's, by g++ and by clang, and the same bytes from each."""

from __future__ import annotations

import ctypes
import hashlib

import pytest

from hillinfer.csd.abi import aligned
from hillinfer.csd.native import Library
from tests.hls import builds
from tests.hls.cases import FORMATS, random_case

SKIP_COMPLEX = ("__AP_INT_SPECIAL_H__", "__AP_FIXED_SPECIAL_H__")  # see hls/CMakeLists.txt
VITIS = "-DCMAKE_CXX_FLAGS=-D__VITIS_HLS__"


@pytest.fixture(scope="module")
def ours(library):
    """Hashes of the kernel as it is tested everywhere else."""
    return {keys: _digest(library.run, keys) for keys in FORMATS}


def _digest(run, keys):
    """Of the Score Blocks of some launches: both reductions, two passes, two heads in a beat, two blocks."""
    pair = keys in ("int8", "int4")
    digest = hashlib.sha256()
    for case in (
        random_case(1, keys, 3, 4, 80, 130, wild=True),
        random_case(2, keys, 2, 7, 32, 200, reduce="sum", pair=pair),
        random_case(3, keys, 1, 1, 32, 1100, min_score=0),
        random_case(4, keys, 1, 1, 32, 0),
    ):
        (query,) = case.layout.pack_query(case.query)
        inputs = (query, case.layout.pack_keys(case.keys), case.layout.pack_exponents(case.exponents))
        blocks = aligned(case.launch.block_beats)
        run(*(array.ctypes.data for array in (*inputs, blocks)), case.launch.scalars)
        assert blocks.tobytes() == case.expected()
        digest.update(blocks)
    return digest.hexdigest()


def _plain(path):
    """The kernel's function of a build that has AMD's streams, which know neither depths nor deadlocks."""
    function = ctypes.CDLL(str(path)).qk_score
    function.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int32] * 6
    function.restype = None
    return lambda query, keys, exps, blocks, scalars: function(query, keys, exps, blocks, *scalars)


def test_amds_headers_by_gcc(ours, tmp_path):
    """As Vitis's C simulation: its headers, and the loop over slots that only Vitis sees."""
    library = builds.by_cmake(tmp_path, builds.HLS, f"-DAP_TYPES={builds.amd_headers()}", VITIS)
    assert {keys: _digest(_plain(library), keys) for keys in FORMATS} == ours


def test_amds_headers_by_clang(ours, tmp_path):
    library = builds.by_clang(tmp_path, builds.amd_headers(), defines=SKIP_COMPLEX)
    assert {keys: _digest(_plain(library), keys) for keys in FORMATS} == ours


@pytest.mark.usefixtures("library")  # its build makes stream_depths.h
def test_our_headers_by_clang(ours, tmp_path):
    depths = builds.HLS.parent / "build" / "native" / "generated"
    built = builds.by_clang(tmp_path, builds.HLS / "compat", depths)
    assert {keys: _digest(_plain(built), keys) for keys in FORMATS} == ours


def test_vitis_writes_the_same_slots(tmp_path):
    """The loop over slots runs under finite streams as well."""
    library = builds.by_cmake(tmp_path, builds.HLS, VITIS)
    case = random_case(9, "int4", 2, 3, 64, 2100)
    assert case.run(Library(library), exact_depth=True) == case.expected()
