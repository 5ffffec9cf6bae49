"""Tasks that are made here: exact lengths, nothing drawn twice, and answers that a plain solver finds in the prompt."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.errors import DocumentError
from hillinfer.evaluation import registry
from hillinfer.evaluation.local.hiding import OneAnswer
from hillinfer.evaluation.shelf import Shelf
from hillinfer.evaluation.task import Asking, Item
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
NUMBER = r"[0-9]{5}"


def text_of(item: Item) -> str:
    return str(TOKENIZER.decode(item.prompt))


def asked(item: Item) -> str:
    return text_of(item)[text_of(item).rindex("\n\n") :].split("Answer: ")[-1].strip()


def single(item: Item) -> list[str]:
    found = re.findall(re.escape(asked(item)) + r" (\w+(?: \w+)?)[.]", text_of(item))
    return sorted(set(found))


def people(item: Item) -> list[str]:
    return re.findall(r"the (\w+)(?:,| and| is| are)", asked(item))


def several(item: Item) -> list[str]:
    return [
        number
        for who in people(item)
        for number in re.findall(rf"(?:secret|A lucky) number of the {who} is ({NUMBER})[.]", text_of(item))
    ]


def tracked(item: Item) -> list[str]:
    value = re.findall(NUMBER, asked(item))[0]
    assigned = dict(re.findall(r"VAR (\w+) = (?:VAR )?(\w+)[.]", text_of(item)))

    def follow(name: str) -> str:
        return follow(assigned[name]) if name in assigned else name

    return [name for name in assigned if follow(name) == value]


def counted(item: Item) -> list[str]:
    words = text_of(item).split("A list of words:")[1].split("\n\n")[0].split()
    counts = [count for _, count in Counter(words).most_common(4)]
    assert counts[2] > counts[3]
    return [word for word, _ in Counter(words).most_common(3)]


SOLVERS = {
    "passkey": single,
    "needle": single,
    "multi-key": several,
    "multi-query": several,
    "multi-value": several,
    "tracking": tracked,
    "common-words": counted,
    "frequent-words": counted,
}


def items(task: str, **asking: Any) -> list[Item]:
    return list(registry.find(task)().items(Asking(TOKENIZER, **({"lengths": [1500]} | asking))))


@pytest.mark.parametrize("task", SOLVERS)
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6), length=st.integers(1200, 4000))
def test_the_answer_can_be_found_in_a_prompt_of_the_length_asked_for(task: str, seed: int, length: int) -> None:
    made = items(task, lengths=[length, length + 1], seed=seed, limit=3)
    assert len(made) == 6
    assert len({item.identity for item in made}) == 6
    for item in made:
        assert len(item.prompt) + len(item.answer) == item.context
        assert sorted(SOLVERS[task](item)) == sorted(item.references)
        said = str(TOKENIZER.decode(item.answer))
        assert said.startswith(" ")
        judge = registry.find(task)()
        assert judge.score(item, said) == 1
        assert judge.score(item, " I do not know") == 0
        longer = isinstance(judge, OneAnswer)  # or a longer number would look like the right one
        assert item.new_tokens >= len(item.answer) + longer


@pytest.mark.parametrize("task", registry.local_names())
def test_a_seed_gives_the_same_items_and_another_others(task: str) -> None:
    first, again, other = items(task, limit=4), items(task, limit=4), items(task, limit=4, seed=1)
    assert [item.prompt.tolist() for item in first] == [item.prompt.tolist() for item in again]
    if task != "text":
        assert not any(mine.prompt.equal(theirs.prompt) for mine, theirs in zip(first, other, strict=True))


@pytest.mark.parametrize("task", ["passkey", "needle"])
def test_facts_stand_at_their_depths(task: str) -> None:
    made = items(task, lengths=[4000])
    assert [item.labels["depth"] for item in made] == [0.1, 0.3, 0.5, 0.7, 0.9] * 2
    for item in made:
        place = text_of(item).index(asked(item)) / len(text_of(item))
        assert abs(place - float(item.labels["depth"])) < 0.05
    assert [item.labels["depth"] for item in items(task, limit=2)] == [0.3, 0.7]


def test_every_fact_has_a_text_of_its_own() -> None:
    for task in ("passkey", "multi-key"):
        made = items(task, lengths=[3000], limit=4)
        assert len({item.text for item in made}) == 4
        assert len({asked(item) if task == "multi-key" else item.references[0] for item in made}) > 1


def test_passages_of_real_text_do_not_overlap(tmp_path: Path) -> None:
    words = [f"{first}{second}{third}" for first in "abcdefgh" for second in "ijklmnop" for third in "qrstuvwx"]
    text, other = " ".join(words), " ".join(word.upper() for word in words[:180])
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text(other)
    sizes = [len(TOKENIZER(each, add_special_tokens=False).input_ids) for each in (text, other)]
    made = items("text", text=tmp_path, lengths=[300], limit=99)
    assert len(made) == sum(size // 300 for size in sizes)
    read = [word for item in made for word in TOKENIZER.decode([*item.prompt, *item.answer]).split()[1:-1]]
    assert len(read) == len(set(read))


def test_a_score_says_what_was_said_right() -> None:
    (item,) = items("multi-value", limit=1)
    judge = registry.find("multi-value")()
    assert judge.score(item, f"{item.references[0]} and {item.references[2]}") == pytest.approx(2 / 3)
    (item,) = items("passkey", limit=1)
    judge = registry.find("passkey")()
    right = item.references[0]
    for said, score, settled in (
        (f" {right}.", 1, True),
        (f" {right}", 1, False),  # a digit more, and it is another number
        (f" {right}7", 0, True),
        (f" 1{right}", 0, True),
        (f" {right[:3]}", 0, False),
    ):
        assert (judge.score(item, said), judge.settled(item, said)) == (score, settled)


@pytest.mark.parametrize("task", registry.local_names())
@pytest.mark.parametrize("length", [1, 60, 64])
def test_a_length_without_room_is_refused(task: str, length: int) -> None:
    with pytest.raises(DocumentError, match="ask for longer --lengths"):
        items(task, lengths=[length], limit=1)


def test_texts_come_from_a_file_or_a_folder_of_books(tmp_path: Path) -> None:
    books = {"a.txt": "An apple. " * 400, "b.txt": "A boat. " * 500, "short.txt": "Too short."}
    for name, text in books.items():
        (tmp_path / name).write_text(text)
    made = items("text", text=tmp_path, limit=3)
    assert ["apple" in text_of(item) for item in made] == [True, False, True]
    assert {len(item.answer) for item in made} == {64}
    assert all(item.new_tokens == 0 for item in made)
    assert "An apple" in text_of(items("passkey", text=tmp_path / "a.txt", limit=1)[0])


def test_texts_of_no_use_are_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("Too short.")
    for path in (tmp_path, tmp_path / "short.txt"):
        with pytest.raises(DocumentError, match=r"has no text of 1500 tokens \(the longest has 10\)"):
            items("text", text=path)
    with pytest.raises(DocumentError, match="no room for what is hidden"):
        items("multi-key", lengths=[300])


def test_the_start_of_a_text_is_the_tokenizers_own() -> None:
    starting = tiny_tokenizer()
    starting.add_bos_token = True
    from tokenizers.processors import TemplateProcessing

    starting.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    for task in ("text", "needle"):
        (item,) = registry.find(task)().items(Asking(starting, [1500], limit=1))
        assert item.prompt[:2].tolist().count(1) == 1
        assert len(item.prompt) + len(item.answer) == 1500


def test_tasks_of_all_lengths_know_the_texts_by_the_same_numbers(tmp_path: Path) -> None:
    """A text that is too short for one task is still there for the shelf, which gives out those of all tasks."""
    for name, words in (("a", 1200), ("b", 5000), ("c", 5000)):
        (tmp_path / f"{name}.txt").write_text(" ".join(str(at % 9) for at in range(words)))
    shelf = Shelf()
    given = {"text": tmp_path, "shelf": shelf}
    made = items("needle", lengths=[1500, 4000], limit=1, **given)
    made += items("passkey", lengths=[1000], limit=2, **given)
    assert {item.text.partition(":")[0] for item in made[:2]} <= {"1", "2"}
    begun: dict[str, list[tuple[int, int]]] = {}
    for item in made:
        book, _, first = item.text.partition(":")
        begun.setdefault(book, []).append((int(first), item.context))
    sizes = [len(TOKENIZER(path.read_text()).input_ids) for path in sorted(tmp_path.iterdir())]
    for book, stretches in begun.items():
        taken = [(first + at) % sizes[int(book)] for first, context in stretches for at in range(context)]
        assert len(set(taken)) == len(taken)
