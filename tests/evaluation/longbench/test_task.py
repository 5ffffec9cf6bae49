import sys
from pathlib import Path

import pytest

from hillinfer.errors import DocumentError, SettingError
from hillinfer.evaluation.longbench.subsets import EVEN, SUBSETS, prompts
from hillinfer.evaluation.longbench.task import LongBench, LongBenchE, length_class
from hillinfer.evaluation.task import Asking, Item
from tests.evaluation.dataset.made_up import long_folder, long_record, write_lines
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ENDS = {
    "narrativeqa": "Question: Who stood on the hill?\n\nAnswer:",
    "qasper": "Question: Who stood on the hill?\n\nAnswer:",
    "multifieldqa_en": "Question: Who stood on the hill?\nAnswer:",
    "multifieldqa_zh": "问题：谁在山上？\n回答：",
    "hotpotqa": "Question: Who stood on the hill?\nAnswer:",
    "2wikimqa": "Question: Who stood on the hill?\nAnswer:",
    "musique": "Question: Who stood on the hill?\nAnswer:",
    "dureader": "问题：谁在山上？\n回答：",
    "gov_report": "Now, write a one-page summary of the report.\n\nSummary:",
    "qmsum": "Query: Who stood on the hill?\nAnswer:",
    "multi_news": "Now, write a one-page summary of all the news.\n\nSummary:",
    "vcsum": "叫阿明。\n\n会议总结：",
    "trec": "stood on the hill {alone}.\nWho stood on the hill?",
    "triviaqa": "stood on the hill {alone}.\n\nWho stood on the hill?",
    "samsum": "stood on the hill {alone}.\n\nWho stood on the hill?",
    "lsht": "叫阿明。\n谁在山上？",
    "passage_count": "The final answer is: ",
    "passage_retrieval_en": "The answer is: ",
    "passage_retrieval_zh": "答案是：",
    "lcc": "stood on the hill {alone}.Next line of code:\n",
    "repobench-p": "stood on the hill {alone}.Who stood on the hill?Next line of code:\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_folder(tmp_path_factory.mktemp("longbench"))


def items(folder: Path, task: type, room: int = 2000, limit: int | None = None) -> list[Item]:
    return list(task().items(Asking(TOKENIZER, (100, room), limit, data=folder)))


@pytest.mark.parametrize("subset", SUBSETS)
def test_a_prompt_of_every_subset(folder: Path, subset: str) -> None:
    first, second = items(folder, LongBench.only(subset))
    record, text = long_record(subset), TOKENIZER.decode(first.prompt)
    template = "<|turn|>" in text
    assert template == SUBSETS[subset].chat
    assert text.removesuffix("<|end|>\n<|turn|>assistant\n").endswith(ENDS[subset])
    assert record["context"] in text
    assert (record["input"] in text) == ("{input}" in prompts()[subset])
    assert first.references == tuple(record["answers"])
    assert (first.new_tokens, first.cut, first.context) == (SUBSETS[subset].new_tokens, 0, 2000)
    form = "chat" if template else "plain"
    assert first.labels == {"subset": subset, "language": record["language"], "length": "0-4k", "prompt": form}
    assert second.labels["length"] == "4-8k"
    assert (first.identity, second.identity) == (f"{subset}/{subset}-0", f"{subset}/{subset}-1")
    assert TOKENIZER.decode(first.answer).strip() in record["answers"][0]


@pytest.mark.parametrize("subset", SUBSETS)
def test_the_right_answer_scores_one(folder: Path, subset: str) -> None:
    task = LongBench.only(subset)
    item = items(folder, task, limit=1)[0]
    assert task().score(item, item.references[0]) == pytest.approx(1, abs=1e-6)
    assert task().score(item, "") == 0


def test_names_and_numbers_are_the_official_ones() -> None:
    assert len(SUBSETS) == 21
    assert set(prompts()) == set(SUBSETS)
    assert set(EVEN) < set(SUBSETS)
    assert [length_class(length) for length in (3999, 4000, 7999, 8000)] == ["0-4k", "4-8k", "4-8k", "8k+"]


def test_all_subsets_in_their_order(folder: Path) -> None:
    found = items(folder, LongBench, limit=1)
    assert [item.labels["subset"] for item in found] == list(SUBSETS)


def test_long_prompts_are_cut_in_the_middle_and_fit(tmp_path: Path) -> None:
    text = "".join(f"{number:04d}" for number in range(500))
    write_lines(tmp_path / "trec.jsonl", [long_record("trec", context=text)])
    item = items(tmp_path, LongBench.only("trec"), room=364)[0]
    room = 364 - 64
    whole = prompts()["trec"].format(context=text, input="Who stood on the hill?")
    assert TOKENIZER.decode(item.prompt) == whole[: room // 2] + whole[-room // 2 :]
    assert item.cut == len(whole) - room
    assert len(item.prompt) + item.new_tokens <= 364


def test_the_best_of_several_answers_counts(tmp_path: Path) -> None:
    write_lines(tmp_path / "hotpotqa.jsonl", [long_record("hotpotqa", answers=["Mr. Bell", "Ames"])])
    task = LongBench.only("hotpotqa")()
    item = items(tmp_path, LongBench.only("hotpotqa"))[0]
    assert task.score(item, "ames") == 1


@pytest.mark.parametrize("subset", ["trec", "triviaqa", "samsum", "lsht"])
def test_only_the_first_line_counts_after_examples(folder: Path, subset: str) -> None:
    task = LongBench.only(subset)()
    item = items(folder, LongBench.only(subset), limit=1)[0]
    right = item.references[0]
    assert task.score(item, f"\n\n{right}\nQuestion: another\nDate") == pytest.approx(1, abs=1e-6)
    assert task.score(item, f"nothing\n{right}") == 0
    assert task.settled(item, f"\n{right}\n")
    assert not task.settled(item, f"\n{right}")


def test_other_subsets_hear_everything_said(folder: Path) -> None:
    task = LongBench.only("hotpotqa")()
    item = items(folder, LongBench.only("hotpotqa"), limit=1)[0]
    assert task.score(item, "the\nAmes") == 1
    assert not task.settled(item, "Ames\n\n")


def test_longbench_e_has_files_of_its_own(tmp_path: Path) -> None:
    long_folder(tmp_path, records=1, suffix="_e")
    assert [item.labels["subset"] for item in items(tmp_path, LongBenchE)] == list(EVEN)
    assert LongBenchE.only("trec").name == "longbench-e/trec"
    with pytest.raises(SettingError, match="longbench-e has no subset 'lsht'"):
        LongBenchE.only("lsht")


def test_an_unknown_subset_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="longbench has no subset 'hotpot_qa': did you mean 'hotpotqa'"):
        LongBench.only("hotpot_qa")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": []}, "answers is not a list of texts"),
        ({"answers": [3]}, "answers is not a list of texts"),
        ({"all_classes": None}, "all_classes is empty"),
        ({"all_classes": ["Number", 3]}, "all_classes is not a list of texts"),
        ({"length": "3000"}, 'line 1: the field length is "3000"'),
    ],
)
def test_broken_records(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    write_lines(tmp_path / "trec.jsonl", [long_record("trec", **changes)])
    with pytest.raises(DocumentError, match=message):
        items(tmp_path, LongBench.only("trec"))


def test_every_file_is_looked_at_before_the_first_item(tmp_path: Path) -> None:
    long_folder(tmp_path)
    (tmp_path / "repobench-p.jsonl").unlink()  # the last subset's
    with pytest.raises(DocumentError, match=r"there is no repobench-p\.jsonl"):
        next(LongBench().items(Asking(TOKENIZER, (2000,), data=tmp_path)))


def test_a_package_that_a_metric_lacks_shows_before_the_first_item(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rouge", None)
    with pytest.raises(SettingError, match=r"needs rouge: pip install 'hillinfer\[evaluation\]'"):
        next(LongBench.only("qmsum")().items(Asking(TOKENIZER, (2000,), data=folder)))


def test_retrieval_is_what_can_be_copied_from_the_prompt() -> None:
    assert LongBench.only("passage_retrieval_en").retrieval
    assert not LongBench.only("hotpotqa").retrieval
    assert not LongBench.retrieval
