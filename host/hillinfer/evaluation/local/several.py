"""Many facts in a long text, as RULER has them: ask for one of many, for several of many, or for all about one."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from hillinfer.evaluation.local import hiding, words
from hillinfer.evaluation.local.form import Question
from hillinfer.evaluation.local.hiding import Haystack, Hidden, OneAnswer
from hillinfer.evaluation.task import Asking, Item, Task

_FACTS = 8
_ASKED = 3
_ITEMS = 8
_OWNERS = 4  # of several numbers each, or of several names
RULER = "RULER (Hsieh et al., arXiv 2404.06654)"


class _Several(Task):
    """Facts at equal distances; one question about a text."""

    retrieval: ClassVar[bool] = True

    def items(self, asking: Asking) -> Iterator[Item]:
        haystack = Haystack(asking)
        for context in asking.lengths:
            for number, place in enumerate(haystack.places(context, asking.limit or _ITEMS)):
                hidden = self.hidden(haystack.draw(self.name, context, number))
                yield haystack.item(f"{context}/{number}", context, place, hidden)

    @abstractmethod
    def hidden(self, drawn: random.Random) -> Hidden:
        """Facts, and a question about them."""

    def score(self, item: Item, said: str) -> float:
        return hiding.share_named(item, said)


def _numbers(drawn: random.Random, count: int) -> list[str]:
    return list(map(str, drawn.sample(range(10_000, 100_000), count)))


def _spread(facts: list[str]) -> list[tuple[float, str]]:
    return [((at + 0.5) / len(facts), fact) for at, fact in enumerate(facts)]


def listed(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


class MultiKey(OneAnswer, _Several):
    """Everybody has a number; one is asked for."""

    name: ClassVar[str] = "multi-key"
    source: ClassVar[str] = f"{RULER}, multi-key needles"

    def hidden(self, drawn: random.Random) -> Hidden:
        people, numbers = drawn.sample(words.PEOPLE, _FACTS), _numbers(drawn, _FACTS)
        facts = [f"The secret number of the {who} is {number}." for who, number in zip(people, numbers, strict=True)]
        asked = drawn.randrange(_FACTS)
        of, answer = f"secret number of the {people[asked]}", numbers[asked]
        said = Question(f"What is the {of}?", f"The {of} is", f" {answer}")
        return Hidden(_spread(facts), said, [answer], {"depth": (asked + 0.5) / _FACTS})


class MultiQuery(_Several):
    """Everybody has a number; three are asked for at once."""

    name: ClassVar[str] = "multi-query"
    source: ClassVar[str] = f"{RULER}, multi-query needles"

    def hidden(self, drawn: random.Random) -> Hidden:
        people, numbers = drawn.sample(words.PEOPLE, _FACTS), _numbers(drawn, _FACTS)
        facts = [f"The secret number of the {who} is {number}." for who, number in zip(people, numbers, strict=True)]
        asked = drawn.sample(range(_FACTS), _ASKED)
        of = f"secret numbers of {listed([f'the {people[at]}' for at in asked])}"
        answers = [numbers[at] for at in asked]
        said = Question(f"What are the {of}?", f"The {of} are", f" {listed(answers)}")
        return Hidden(_spread(facts), said, answers)


class MultiValue(_Several):
    """Four people with three numbers each, every number in a sentence of its own; all of one are asked for."""

    name: ClassVar[str] = "multi-value"
    source: ClassVar[str] = f"{RULER}, multi-value needles"

    def hidden(self, drawn: random.Random) -> Hidden:
        people, numbers = drawn.sample(words.PEOPLE, _OWNERS), _numbers(drawn, _OWNERS * _ASKED)
        owners = list(range(_OWNERS)) * _ASKED
        drawn.shuffle(owners)
        facts = [f"A lucky number of the {people[who]} is {n}." for who, n in zip(owners, numbers, strict=True)]
        answers = [number for who, number in zip(owners, numbers, strict=True) if who == 0]
        of = f"lucky numbers of the {people[0]}"
        said = Question(f"What are the {of}?", f"The {of} are", f" {listed(answers)}")
        return Hidden(_spread(facts), said, answers)


class Tracking(_Several):
    """Chains of variables: which of them have this value? The answer is to be followed, not to be copied."""

    name: ClassVar[str] = "tracking"
    source: ClassVar[str] = f"{RULER}, variable tracking"
    retrieval: ClassVar[bool] = False

    def hidden(self, drawn: random.Random) -> Hidden:
        names = drawn.sample([a + b + c for a in "BDGKMPRT" for b in "AEIOU" for c in "LNSXZ"], _OWNERS * _ASKED)
        numbers = _numbers(drawn, _OWNERS)
        chains = [names[chain * _ASKED : (chain + 1) * _ASKED] for chain in range(_OWNERS)]
        facts = []
        for step in range(_ASKED):  # a variable is known before it is named again
            for chain, number in drawn.sample(list(zip(chains, numbers, strict=True)), _OWNERS):
                facts.append(f"VAR {chain[step]} = {f'VAR {chain[step - 1]}' if step else number}.")
        value, right = numbers[0], chains[0]
        begun = f"The variables with the value {value} are"
        said = Question(f"Which variables have the value {value}?", begun, f" {listed(right)}")
        return Hidden(_spread(facts), said, right)
