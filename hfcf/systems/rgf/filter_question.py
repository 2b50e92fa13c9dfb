"""Filters on generated questions: readers that give the answer back, and nearness to the source's question (RGF, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf import prompts
from hfcf.core.candidates import Candidate, reject, settle, undecided
from hfcf.core.edits import word_distance
from hfcf.core.model import Model
from hfcf.core.settings import Endpoint, Models, NonNegative, Positive, TrainedBy
from hfcf.core.stage import Reject, Stage
from hfcf.engines.reader import Reader
from hfcf.engines.remote.engine import Remote
from hfcf.systems.rgf.answer_candidates import AGREE, CANDIDATES, DISTANCE, QUESTION, RANK, value
from hfcf.systems.rgf.retrieve import PROMPTS, read_answers
from hfcf.tasks.qa import TASK
from hfcf.text.normalise import matches


@dataclass(frozen=True, kw_only=True)
class RoundTrip(Stage):
    """Keep a question where enough readers answer it from its passage with the answer that it was generated for.

    Input column: `candidates`. Output column: `candidates`, with the number of readers that agree among their scores. A reader's
    best answer is compared after SQuAD's normalisation.

    Readers are asked in their order, until enough of them agree or too few are left, which changes no decision. "Readers that
    agree" counts those that were asked.

    Args:
        readers: models that are trained alike, but for the seed (and, for small models, the half of the data). () switches the
            filter off: all questions pass, without a score.
        agree: how many readers must agree.
        reader_length: tokens of a window of the passage, with the question.

    Raises:
        ValueError: `agree` is more than there are readers, or a reader is named twice.

    >>> RoundTrip(readers=(Model("a"), Model("b")), agree=3)
    Traceback (most recent call last):
    ValueError: agree must be at most 2, the number of readers, got 3
    """

    inputs: ClassVar = {"candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "rgf.generate_question"}
    batch_size: ClassVar[int] = 32

    engines: ClassVar = (Reader, Remote)

    readers: Annotated[Models, Endpoint(), TrainedBy("train_reader")]
    # Section 3.4: at least 5 of 6 readers. Appendix A: "more than 5 out of 6".
    agree: Positive = 5
    reader_length: Positive = 384

    def check(self) -> None:
        check_agreement(self.readers, self.agree)

    def confirming(self) -> tuple[str, list[Model]] | None:
        return ("the readers named above", list(self.readers)) if self.readers else None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state(PROMPTS, *self.readers)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if not self.readers:
            return [{"candidates": row["candidates"]} for row in rows]
        open_ = [candidate for row in rows for candidate in row["candidates"] if undecided(candidate)]
        agreeing = iter(self._ask(open_))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            judged = [
                self._judge(candidate, next(agreeing)) if undecided(candidate) else candidate for candidate in row["candidates"]
            ]
            results.append(settle(judged, "there is no question to answer"))
        return results

    def _ask(self, questions: Sequence[Candidate]) -> list[int]:
        """Count the readers that give the answer to each question, until its decision is certain."""
        counts = [0] * len(questions)
        for left, reader in zip(range(len(self.readers), 0, -1), self.readers, strict=True):
            unsettled = [i for i, count in enumerate(counts) if self.agree - left <= count < self.agree]
            engine = Reader(model=reader, max_length=self.reader_length, n_best=1)
            requests = [[questions[i]["question"], questions[i]["context"], questions[i]["title"]] for i in unsettled]
            for i, best in zip(unsettled, read_answers(engine, requests, self.seed), strict=True):
                counts[i] += bool(best) and matches(best[0]["text"], questions[i]["answers"]["text"])
        return counts

    def _judge(self, candidate: Candidate, count: int) -> Candidate:
        candidate = {**candidate, "scores": [*candidate["scores"], {"name": AGREE, "value": float(count)}]}
        if count >= self.agree:
            return candidate
        return reject(candidate, self.name, f"fewer than {self.agree} of {len(self.readers)} readers give the answer")


def check_agreement(readers: Sequence[Model], agree: int) -> None:
    if readers and agree > len(readers):
        raise ValueError(f"agree must be at most {len(readers)}, the number of readers, got {agree}")
    if twice := next((reader for i, reader in enumerate(readers) if reader in readers[:i]), None):
        raise ValueError(f"readers: {twice.name!r} is named twice: it would only agree with itself")


@dataclass(frozen=True, kw_only=True)
class Minimality(Stage):
    """Keep the question that is nearest to the source's: the smallest word-level edit distance.

    Input columns: `question`, `candidates`. Output column: `candidates`, with their distances among their scores. Equal distances
    are decided by the retrieval rank, then by the probability of the question, then by its text. The paper (section 3.4) does not
    define a word: see `hfcf.core.edits.word_distance`.

    Args:
        keep: how many questions are kept: 1 for training data; None, all, for evaluation sets and analyses.
        distance: the least and the greatest distance that is kept, such as (1, 4), or (11, None) without an upper limit. The
            paper's bins are 1–4, 5–10 and above 10 (Table 9).

    Raises:
        ValueError: `distance` is not a range.

    >>> Minimality(keep=None, distance=(11, None)).distance
    (11, None)
    """

    inputs: ClassVar = {"question": TASK.columns["question"], "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "rgf.round_trip"}

    keep: Positive | None = 1
    distance: tuple[NonNegative, NonNegative | None] | None = None

    def check(self) -> None:
        if self.distance is not None:
            low, high = self.distance
            if high is not None and high < low:
                raise ValueError(f"distance must be the least and the greatest, such as (1, 4) or (11, None), got {self.distance}")

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        candidates = [
            self._measure(row["question"], candidate) if undecided(candidate) else candidate for candidate in row["candidates"]
        ]
        order = sorted(
            (i for i, candidate in enumerate(candidates) if undecided(candidate)), key=lambda i: _nearness(candidates[i])
        )
        keep = len(order) if self.keep is None else self.keep
        for i in order[keep:]:
            last, own = (int(value(candidates[j], DISTANCE)) for j in (order[keep - 1], i))
            reason = f"another question is {'as near' if last == own else 'nearer'} (distance {last}, of this one {own})"
            candidates[i] = reject(candidates[i], self.name, reason)
        result = settle(candidates, "there is no question to choose")
        if isinstance(result, Reject):
            raise result
        return result

    def _measure(self, source: str, candidate: Candidate) -> Candidate:
        distance = word_distance(source, candidate["question"])
        candidate = {**candidate, "scores": [*candidate["scores"], {"name": DISTANCE, "value": float(distance)}]}
        if self.distance is None:
            return candidate
        low, high = self.distance
        if low <= distance and (high is None or distance <= high):
            return candidate
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        return reject(candidate, self.name, f"the distance from the source's question is {distance}, and not {limits}")


def _nearness(candidate: Mapping[str, Any]) -> tuple[Any, ...]:
    rank, score = value(candidate, RANK), round(value(candidate, QUESTION), 5)
    return (
        value(candidate, DISTANCE),
        rank,
        -score,
        candidate["question"],
        candidate["answers"]["answer_start"][0],
        candidate["answers"]["text"][0],
    )
