"""Which transformers these tests run against: `make test` runs this folder twice, once on an older one."""

from __future__ import annotations

import os

import torch
import transformers

from tests.tiny import random_ids, tiny


def test_the_transformers_under_test_is_the_one_asked_for() -> None:
    expected = os.environ.get("HILLINFER_EXPECT_TRANSFORMERS", transformers.__version__)
    assert transformers.__version__ == expected, transformers.__file__


def test_it_works_with_the_torch_at_hand() -> None:
    ids = random_ids(20)
    out = tiny("llama").generate(ids, max_new_tokens=5, do_sample=False)
    assert torch.equal(out[:, :20], ids)
    assert out.shape == (1, 25)
