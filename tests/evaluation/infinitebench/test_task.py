from pathlib import Path

import pytest

from hillinfer.errors import DocumentError
from hillinfer.evaluation.infinitebench.prompts import answers, templates
from hillinfer.evaluation.infinitebench.subsets import SUBSETS
from hillinfer.evaluation.infinitebench.task import InfiniteBench
from hillinfer.evaluation.task import Asking, Item
from tests.evaluation.dataset.made_up import infinite_folder, infinite_record, write_lines
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ENDS = {
    "passkey": "It was so {then}.\n\nWhat is the pass key?\n\nThe pass key is",
    "number_string": "What is the sequence of digits?\n\nThe sequence of digits is",
    "kv_retrieval": 'Key: "a1"\nThe value associated with the specified key is: ',
    "longbook_sum_eng": "It was so {then}.\n\nSummary:",
    "longbook_choice_eng": "Question: Where was he?\nA. Cellar\nB. Hill Farm\nC. Mill\nD. Town\n\n"
    "The letter of the correct answer is",
    "longbook_qa_eng": "It was so {then}.\n\nQuestion: Who was he?\nAnswer:",
    "longbook_qa_chn": "问题：谁在山上？\n答案：",
    "longdialogue_qa_eng": "The name that has been replaced with $$MASK$$ is likely",
    "math_find": "What is the second largest number in the following list?\n\nIt was so {then}.\n\n"
    "The second largest number of the list is: ",
    "math_calc": "Expression: It was so {then}.\nValues:",
    "code_run": "Please compute the exact value of func_12(-3). The value of func_12(-3) is",
    "code_debug": "Options:\nA. go\nB. run\nC. parse\nD. x.y\n\nThe correct option is:",
}
GOLD = {
    "passkey": " 71432",
    "number_string": " 7143271432"[:12],
    "kv_retrieval": "b2-c3",
    "longbook_choice_eng": " B",
    "longbook_qa_chn": "阿明",
    "longdialogue_qa_eng": " AMES",
    "math_find": "8.25"[:3],
    "math_calc": " [3, 8, -1]",
    "code_run": " -4",
    "code_debug": " C",
}
SAID = {"math_calc": "3, 8", "longbook_choice_eng": "B", "code_debug": "C. parse"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return infinite_folder(tmp_path_factory.mktemp("infinitebench"))


def items(folder: Path, subset: str, room: int = 4000, limit: int | None = None) -> list[Item]:
    return list(InfiniteBench.only(subset)().items(Asking(TOKENIZER, (room,), limit, data=folder)))


@pytest.mark.parametrize("subset", SUBSETS)
def test_a_prompt_of_every_subset(folder: Path, subset: str) -> None:
    first, second = items(folder, subset)
    text = TOKENIZER.decode(first.prompt)
    assert text.endswith(ENDS[subset])
    assert infinite_record(subset)["context"] in text
    assert "<|turn|>" not in text
    assert TOKENIZER.decode(first.answer) == GOLD.get(subset, " Ames")
    assert (first.identity, second.identity) == (f"{subset}/0", f"{subset}/1")
    assert (first.labels, first.cut, first.context) == ({"subset": subset}, 0, 4000)
    assert first.new_tokens == (2000 if subset == "math_calc" else SUBSETS[subset].new_tokens)


@pytest.mark.parametrize("subset", SUBSETS)
def test_the_right_answer_scores(folder: Path, subset: str) -> None:
    task, item = InfiniteBench.only(subset)(), items(folder, subset, limit=1)[0]
    expected = 2 / 3 if subset == "math_calc" else 1  # its third value is below 0
    assert task.score(item, SAID.get(subset, item.references[0])) == pytest.approx(expected)
    assert task.score(item, "") == 0


def test_any_answer_of_a_book_is_right_and_only_the_first_name(folder: Path) -> None:
    book, dialogue = (InfiniteBench.only(name) for name in ("longbook_qa_eng", "longdialogue_qa_eng"))
    item = items(folder, "longbook_qa_eng", limit=1)[0]
    assert book().score(item, "john ames") == 1
    item = items(folder, "longdialogue_qa_eng", limit=1)[0]
    assert dialogue().score(item, "John Ames") == 1
    assert dialogue().score(item, "John") == 0


def test_answers_in_every_form_the_files_have() -> None:
    assert answers("code_debug", infinite_record("code_debug", answer="run")) == ("run", "B")
    assert answers("code_debug", infinite_record("code_debug", answer=["run", "B"])) == ("run", "B")
    assert answers("math_calc", infinite_record("math_calc", answer=[[1, -2]])) == ("1", "-2")
    assert answers("math_find", infinite_record("math_find", answer=7)) == ("7",)
    assert answers("passkey", infinite_record("passkey")) == ("71432",)


def test_names_are_the_official_ones() -> None:
    assert len(SUBSETS) == 12
    assert set(templates()) == set(SUBSETS)
    assert {name for name in SUBSETS if InfiniteBench.only(name).retrieval} == {
        "passkey",
        "number_string",
        "kv_retrieval",
    }


def test_long_prompts_are_cut_in_the_middle(tmp_path: Path) -> None:
    write_lines(tmp_path / "passkey.jsonl", [infinite_record("passkey", context="x" * 3000)])
    item = items(tmp_path, "passkey", room=506)[0]
    assert len(item.prompt) == 500
    assert item.cut == len(templates()["passkey"].format(context="x" * 3000, input="What is the pass key?")) - 500


@pytest.mark.parametrize(
    ("subset", "changes", "message"),
    [
        ("code_debug", {"options": ["a", "b"]}, "fewer than 4 options"),
        ("code_debug", {"answer": ["other"]}, "answer other is none of its options"),
        ("code_run", {"input": "What?"}, r"code_run\.jsonl, id 0: its input 'What\?' asks for nothing"),
        ("math_find", {"input": "What?"}, "asks for nothing"),
        ("passkey", {"answer": []}, "has no answer"),
        ("passkey", {"answer": [["71432"]]}, "its answer .*71432.* is no text and no number"),
        ("math_find", {"answer": ["five"]}, "id 0: its answer five is no number"),
        ("math_calc", {"answer": [3, "five"]}, "id 0: its answer five is no whole number"),
        ("math_calc", {"answer": [3.5]}, "id 0: its answer 3.5 is no whole number"),
        ("code_run", {"answer": ["five"]}, "id 0: its answer five is no whole number"),
        ("passkey", {"answer": None}, "line 1: the field answer is null"),
    ],
)
def test_broken_records(tmp_path: Path, subset: str, changes: dict[str, object], message: str) -> None:
    write_lines(tmp_path / f"{subset}.jsonl", [infinite_record(subset, **changes)])
    with pytest.raises(DocumentError, match=message):
        items(tmp_path, subset)
