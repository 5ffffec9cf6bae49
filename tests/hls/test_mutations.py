"""The tests see what they should: a kernel with one thing wrong differs from the model, for one thing after another."""

from __future__ import annotations

import pytest

from hillinfer.csd.native import Library
from tests.hls import builds
from tests.hls.cases import FORMATS, random_case

MUTATIONS = {
    "rounding: half up instead of half to even": (
        "cast.h",
        "rest > 2048u || (rest == 2048u && magnitude[0])",
        "rest >= 2048u",
    ),
    "rounding: truncation": ("cast.h", "if (up) magnitude", "if (false) magnitude"),
    "tree: a term is left out": ("dot.h", "return sum16[0] + sum16[1];", "return sum16[0];"),
    "tree: a level is one bit short": ("dot.h", "ap_int<18> sum4[8];", "ap_int<16> sum4[8];"),
    "INT4: its sign is lost": ("dot.h", "- (key[3] ? twice", "+ (key[3] ? twice"),
    "shift: rounds to nearest": ("process/normalise.h", "product >> clamped;", "(product >> clamped) + 1;"),
    "trailer: scanned is one short": (
        "process/compact.h",
        "(i & (QK_BLOCK_TOKENS - 1u)) + 1u : 0u",
        "i & (QK_BLOCK_TOKENS - 1u) : 0u",
    ),
    "trailer: the maximum is of the kept only": (
        "process/compact.h",
        "if (score > maximum)",
        "if (keep && score > maximum)",
    ),
}


@pytest.mark.parametrize(("file", "old", "new"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_mutation_is_found(tmp_path, file, old, new):
    copy = builds.altered(tmp_path, file, old, new)
    mutant = Library(builds.by_cmake(tmp_path / "build", copy, "-DCMAKE_BUILD_TYPE=Debug"))
    assert any(case.run(mutant) != case.expected() for case in _cases())


def test_the_kernel_as_it_is_passes_the_same_cases(library):
    assert all(case.run(library) == case.expected() for case in _cases())


def _cases():
    return [random_case(1, keys, 2, 4, 64, 300, min_score=least) for keys in FORMATS for least in (2000, 32767)]
