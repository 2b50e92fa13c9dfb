"""Look for the smallest change of a row that misleads a model, for many rows at once.

A search is a generator: it yields rows to ask the model about, and is sent the answers. `search_all` puts what all searches ask at
a time into one call, so an engine fills its batches. A row's queries are counted as if it had been alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hfcf.core.decisions import exceeds
from hfcf.core.edits import Edit
from hfcf.core.model import Model
from hfcf.core.task import Row, Task
from hfcf.engines.classifier import choose
from hfcf.studies.attack.words import Place, apply, edits_of

Answer = Mapping[str, float] | str | None
Change = tuple[dict[Place, str], Row]
"""Replaced words, and the row that they make."""
Asking = Generator[list[Row], list[Answer], "Found"]


@dataclass(frozen=True)
class Target:
    """The model that is attacked."""

    task: Task
    model: Model
    max_length: int

    def ask(self, rows: Sequence[Row]) -> list[Answer]:
        """Ask for the label of each row."""
        return list(self.task.verdicts(rows, self.model, self.max_length)) if rows else []

    def label(self, answer: Answer) -> str | None:
        """Return the label that the model chooses; None where it gave none."""
        return choose(answer, self.task.labels or list(answer)) if isinstance(answer, Mapping) else None


@dataclass(frozen=True)
class Found:
    """How a search ended.

    Args:
        queries: how many rows the model was asked about, the source among them.
        row: the row that misleads it; None if none was found.
        answer: the model's, to that row.
        edits: of the source, where words were replaced.
        reason: why none was found.
    """

    queries: int
    row: Row | None = None
    answer: Answer = None
    edits: tuple[Edit, ...] = ()
    reason: str | None = None


@dataclass
class Search:
    """The search on one row, which the model gives its label.

    Args:
        target: the model.
        row: the source.
        most: queries that may be made, with the one about the source.
    """

    target: Target
    row: Row
    most: int
    queries: int = 1

    def candidates(self, rows: Sequence[Row]) -> Asking:
        """Ask about finished rows in turn, until the model misses the label of a row."""
        for new in rows:
            for answer in (yield from self._ask([new])):
                if self._misses(answer, new["label"]):
                    return Found(self.queries, new, answer)
        return self._nothing("the model gives every candidate its label" if rows else "there is no candidate")

    def words(self, places: Sequence[Place], answer: Answer, most: int) -> Asking:
        """Replace words, the most important first, as long as that makes the label less likely.

        A word's importance is what its deletion takes from the label's probability. Half of the queries at most go into that; the
        words behind them follow in reading order. The substitute of a word that leaves the label the least probable stays. Scores
        within the tolerance are equal, and then the first in order is taken.

        Args:
            places: of the words, with their substitutes.
            answer: the model's, to the source.
            most: words that may be replaced.
        """
        left, chosen = self._probability(answer), dict[Place, str]()
        for place in (yield from self._order(places)):
            tried = self._apply({**chosen, place: word} for word in place.substitutes)
            answers = yield from self._ask([new for _, new in tried])
            missed = [n for n, answer in enumerate(answers) if self._misses(answer, self.row["label"])]
            scores = {n: self._probability(answers[n]) for n in missed or range(len(answers))}
            if not scores:
                continue
            best = _lowest(scores)
            if missed:
                return (yield from self._shrink(tried[best], answers[best]))
            if exceeds(left, scores[best]):
                chosen, left = tried[best][0], scores[best]
            if len(chosen) == most:
                return self._nothing(f"no change of {most} word{'s' * (most > 1)} misleads it")
        return self._nothing("no substitute misleads it" if places else "no word has a substitute")

    def _order(self, places: Sequence[Place]) -> Generator[list[Row], list[Answer], list[Place]]:
        lone = self._apply({place: ""} for place in places)[: (self.most - self.queries) // 2]
        answers = yield from self._ask([new for _, new in lone])
        scores = {place: self._probability(answer) for (place,), answer in zip((words for words, _ in lone), answers, strict=True)}
        order = []
        while scores:
            order.append(_lowest(scores))
            del scores[order[-1]]
        return [*order, *(place for place in places if place not in order)]

    def _shrink(self, change: Change, answer: Answer) -> Asking:
        """Put back each word without which the model is still misled."""
        for place in list(change[0])[:-1]:
            for fewer in self._apply([{other: word for other, word in change[0].items() if other != place}]):
                for less in (yield from self._ask([fewer[1]])):
                    if self._misses(less, self.row["label"]):
                        change, answer = fewer, less
        return Found(self.queries, change[1], answer, tuple(edits_of(change[0])))

    def _apply(self, tried: Iterable[dict[Place, str]]) -> list[Change]:
        """Return replaced words with the rows that they make, where they make a row."""
        made = ((words, apply(self.target.task, self.row, words)) for words in tried)
        return [(words, new) for words, new in made if new is not None]

    def _ask(self, rows: Sequence[Row]) -> Generator[list[Row], list[Answer], list[Answer]]:
        """Ask about rows, only the first rows where queries run out; the answers are as many as were asked."""
        asked = list(rows[: self.most - self.queries])
        self.queries += len(asked)
        return (yield asked) if asked else []

    def _nothing(self, reason: str) -> Found:
        return Found(self.queries, reason="the queries were used up" if self.queries >= self.most else reason)

    def _misses(self, answer: Answer, label: str) -> bool:
        return self.target.label(answer) not in (None, label)

    def _probability(self, answer: Answer) -> float:
        """Return the probability of the row's label; 1 where the model gave no answer, so that nothing is gained by it."""
        return answer.get(self.row["label"], 0.0) if isinstance(answer, Mapping) else 1.0


def _lowest(scores: Mapping[Any, float]) -> Any:
    """Return the first key whose score is within the tolerance of the lowest."""
    lowest = min(scores.values())
    return next(key for key, score in scores.items() if not exceeds(score, lowest))


def search_all(searches: Sequence[Asking], ask: Callable[[list[Row]], list[Answer]]) -> list[Found]:
    """Run searches together, and return how each ended."""
    results: dict[int, Found] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
    while answers:
        asked: dict[int, list[Row]] = {}
        for i, given in answers.items():
            try:
                asked[i] = searches[i].send(given)
            except StopIteration as end:
                results[i] = end.value
        every = iter(ask([row for rows in asked.values() for row in rows]))
        answers = {i: list(islice(every, len(rows))) for i, rows in asked.items()}
    return [results[i] for i in range(len(searches))]
