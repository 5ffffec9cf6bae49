"""Stretches of texts: apart from each other, in one row and over rows, as long as there is text."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.evaluation.plans import SMALL
from hillinfer.evaluation.shelf import Place, Shelf, stretch

BUILT_IN = 113_087  # tokens of SmolLM2's in CPython 3.11's English text
RETRIEVING = ("passkey", "needle", "multi-key")


def covered(books: list[torch.Tensor], place: Place, tokens: int) -> set[tuple[int, int]]:
    book, first = place
    return {(book, int(at)) for at in stretch(books[book], first, tokens)}


@given(
    sizes=st.lists(st.integers(50, 200), min_size=1, max_size=4),
    rows=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 12)), max_size=6),
    seed=st.integers(0, 100),
)
def test_no_stretch_overlaps_another_of_its_row_or_is_the_same(
    sizes: list[int], rows: list[tuple[int, int]], seed: int
) -> None:
    books, shelf = [torch.arange(size) for size in sizes], Shelf()
    for context, items in rows:
        places = shelf.row(books, context, items, seed)
        assert len(places) == items
        different = set(places)
        room = sum(size // context for size in sizes)
        assert len(different) == min(items, room)
        assert len(set.union(*(covered(books, each, context) for each in different))) == context * len(different)


def test_rows_share_no_text_until_it_is_used_up() -> None:
    books, shelf = [torch.arange(100), torch.arange(60)], Shelf()
    first, second = shelf.row(books, 20, 3, 0), shelf.row(books, 50, 1, 0)
    used = [covered(books, each, tokens) for tokens, row in ((20, first), (50, second)) for each in row]
    assert len(set.union(*used)) == 110
    again = shelf.row(books, 20, 8, 0)  # all of it
    assert len(set.union(*(covered(books, each, 20) for each in again))) == 160


def test_texts_are_taken_in_turn_and_a_seed_has_its_own() -> None:
    books = [torch.arange(100)] * 5
    assert {book for book, _ in Shelf().row(books, 10, 5, 0)} == set(range(5))
    assert Shelf().row(books, 10, 5, 0) == Shelf().row(books, 10, 5, 0)
    assert Shelf().row(books, 10, 5, 0) != Shelf().row(books, 10, 5, 1)


def test_the_small_evaluation_asks_of_texts_that_are_all_apart() -> None:
    """As many as a pooled interval under ±10 points takes: z²/(35 + z²); without multi-key, which may not count."""
    books, shelf = [torch.arange(BUILT_IN)], Shelf()
    used = [
        covered(books, place, context)
        for part in SMALL
        if part.task in RETRIEVING
        for context in part.lengths
        for place in shelf.row(books, context, part.limit or 0, 0)
    ]
    assert sum((part.limit or 0) * len(part.lengths) for part in SMALL if part.task in RETRIEVING[:2]) >= 35
    assert len(set.union(*used)) == sum(map(len, used))
