import zipfile
from pathlib import Path

import huggingface_hub
import pytest

from hillinfer.errors import DocumentError
from hillinfer.evaluation.dataset.files import Source

ZIPPED = Source("longbench", "THUDM/LongBench", archive="data.zip")
LOOSE = Source("infinitebench", "xinrongzhang2022/InfiniteBench")


@pytest.mark.parametrize("place", ["", "data", "longbench", "longbench/data"])
def test_a_file_lies_where_people_put_it(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "a.jsonl").write_bytes(b"here")
    content, where = ZIPPED.read("a.jsonl", tmp_path)
    assert content == b"here"
    assert where == str(tmp_path / place / "a.jsonl")


def test_a_file_in_the_archive_as_it_was_downloaded(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("data/a.jsonl", "there")
    assert ZIPPED.read("a.jsonl", tmp_path) == (b"there", f"a.jsonl in {tmp_path / 'data.zip'}")
    with pytest.raises(DocumentError, match=r"holds no b\.jsonl"):
        ZIPPED.read("b.jsonl", tmp_path)
    (tmp_path / "data.zip").write_bytes(b"cut off")
    with pytest.raises(DocumentError, match="not a whole zip"):
        ZIPPED.read("a.jsonl", tmp_path)


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    command = "hf download --repo-type dataset xinrongzhang2022/InfiniteBench a.jsonl --local-dir data/infinitebench"
    with pytest.raises(DocumentError, match=f"there is no a.jsonl in .*{command}.*--data data"):
        LOOSE.read("a.jsonl", tmp_path)


def test_no_hub_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> str:
        raise OSError("no route to host\nand more")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", offline)
    with pytest.raises(DocumentError, match=r"from the hub \(no route to host\): .*THUDM/LongBench data\.zip"):
        ZIPPED.read("a.jsonl", None)


def test_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"far")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda _, name, **__: str(tmp_path / name))
    assert LOOSE.read("a.jsonl", None) == (b"far", "xinrongzhang2022/InfiniteBench/a.jsonl")
