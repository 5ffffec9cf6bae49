"""The ABI is written down once, in qk_abi.h: its Python side says the same, and the kernel does what both say."""

from __future__ import annotations

import re

import numpy as np

from hillinfer.csd.abi import numbers
from tests.hls import builds
from tests.hls.cases import random_case


def test_every_number_of_the_header_is_that_of_python(tmp_path):
    header = builds.HLS / "qk_abi.h"
    names = re.findall(r"\b(QK_\w+) =", header.read_text())
    prints = "\n".join(f'  std::printf("{name} %lld\\n", (long long){name});' for name in names)
    (tmp_path / "print.cpp").write_text(f'#include <cstdio>\n#include "{header}"\nint main() {{\n{prints}\n}}\n')
    builds.run(["g++", "-std=c++14", "-Wall", "-Wextra", "-Werror", tmp_path / "print.cpp", "-o", tmp_path / "print"])
    lines = builds.run([tmp_path / "print"]).splitlines()
    compiled = {name.removeprefix("QK_"): int(value) for name, value in map(str.split, lines)}
    ours = {name: value for name, value in vars(numbers).items() if name.isupper()}
    assert compiled == ours


def test_the_trailer_has_its_fields_where_the_numbers_say(library):
    case = random_case(1, "int8", 2, 3, 64, 1100, min_score=0)
    slots = np.frombuffer(case.run(library), np.uint8).reshape(2, -1)
    trailer = slots[1, numbers.TUPLE_BEATS * numbers.BEAT_BYTES :]
    scores = case.scores()[1024:]

    def word(offset):
        return int(trailer[offset : offset + 4].view("<u4")[0])

    assert word(numbers.TRAILER_MAGIC) == numbers.MAGIC
    assert word(numbers.TRAILER_TAG) == case.tag
    assert word(numbers.TRAILER_FIRST_TOKEN) == case.first + 1024
    assert word(numbers.TRAILER_SCANNED) == 76
    assert word(numbers.TRAILER_EMITTED) == np.count_nonzero(scores >= 0)
    assert word(numbers.TRAILER_MAXIMUM) == int(scores.max()) & 0xFFFFFFFF
    assert word(numbers.TRAILER_STATUS) == 0
    assert word(numbers.TRAILER_INDEX) == 1
    assert word(numbers.TRAILER_COUNT) == 2
    assert word(numbers.TRAILER_NOT_TAG) == ~case.tag & 0xFFFFFFFF
