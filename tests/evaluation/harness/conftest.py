from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lm_eval")
import datasets
import huggingface_hub

from tests.evaluation.harness.made_up import folder


@pytest.fixture(scope="session", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The four tasks' files; what the data sets library makes of them goes to a folder of the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        yield folder(tmp_path_factory.mktemp("harness"))
