"""Which stretch of which text an item gets: none overlaps another before every text has been given out whole."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

Place = tuple[int, int]
"""A text by its number, and where in it the stretch begins; past its end the text goes on from its start."""


class Shelf:
    """What of the texts has been given out, to all tasks of an evaluation in turn.

    Intervals take texts as independent, also where rows are pooled (decisions 65 and 69). Which ones an item gets
    depends on the seed and on what was asked for before: the same plan gets the same.
    """

    def __init__(self) -> None:
        self._given: dict[int, int] = {}  # tokens by text, since it was last whole

    def row(self, books: Sequence[torch.Tensor], context: int, items: int, seed: int) -> list[Place]:
        """``items`` stretches of ``context`` tokens; books: texts int64 [n], always the same ones, one of them at least
        with n ≥ ``context``.

        Texts that have too little left for all of them count as whole again. If they still have too little, stretches
        come again, and items with the same one are of one text.
        """
        if sum((len(book) - self._given.get(at, 0)) // context for at, book in enumerate(books)) < items:
            self._given.clear()
        order = list(range(len(books)))
        random.Random(f"{seed}/order of texts").shuffle(order)
        begins = {at: random.Random(f"{seed}/text {at}").randrange(len(book)) for at, book in enumerate(books)}
        places: list[Place] = []
        while len(places) < items:
            before = len(places)
            for book in order:  # in turn: as many different texts as there are
                given, size = self._given.get(book, 0), len(books[book])
                if len(places) < items and given + context <= size:
                    places.append((book, (begins[book] + given) % size))
                    self._given[book] = given + context
            if len(places) == before:
                return [places[number % len(places)] for number in range(items)]
        return places


def stretch(book: torch.Tensor, first: int, tokens: int) -> torch.Tensor:
    """int64 [tokens] from ``first`` on, past the end from the start; tokens ≤ n."""
    return torch.cat([book[first:], book[:first]])[:tokens]
