"""Keep questions that readers answer with the answer that they were generated for (RGF, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from hfcf import prompts
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.decisions import exceeds
from hfcf.core.model import Model
from hfcf.core.settings import Models, Positive, Prompted, Share, TrainedBy
from hfcf.core.stage import Reject, Stage
from hfcf.engines.llm.engine import LanguageModel
from hfcf.engines.reader import Reader
from hfcf.systems.rgf.answer_candidates import AGREE, CANDIDATES, PASSAGES, passage_problem
from hfcf.systems.rgf.minimality import Limits, check_limits, nearest_first
from hfcf.systems.rgf.retrieve import PROMPTS, Margin, doubt, read_answers
from hfcf.tasks.qa import TASK
from hfcf.text.normalise import matches

WAVE = 4
"""How many questions of a source the readers are asked first; then as many as so far, so that later batches stay large."""


Place = tuple[int, int]
"""A candidate: the number of its row, and its own."""


class Agreement(NamedTuple):
    """How many readers give a question's answer, and why it is rejected, or None."""

    votes: int
    why: str | None


@dataclass(frozen=True, kw_only=True)
class RoundTrip(Stage):
    """Keep a question that enough readers answer as it was meant. They give the answer that it was generated for, from its passage.

    Input columns: `question`, `candidates`, and `passages` for `elsewhere`. Output column: `candidates`, with the number of readers
    that agree among their scores. A reader's best answer is compared after SQuAD's normalisation.

    What cannot change the questions that `hfcf.systems.rgf.minimality.Minimality` keeps is not asked:

    - The questions nearest to the source's come first, a few of each source at a time. When `keep` of them have passed, the
      farther questions are rejected as "not asked". Questions outside `distance` are left to `Minimality`.
    - Readers are asked in their order, until enough of them agree or too few are left. "Readers that agree" counts the readers
      that were asked.

    Args:
        readers: models that are trained alike, but for the seed (and, for small models, the half of the data). The paper has six
            (section 3.4, appendix A); give as many for its filter. Their order changes which of them are asked. It changes no
            decision but that of `elsewhere`, which asks the first. () switches the filter off: all questions pass, without a
            score.
        agree: how many readers must agree: "at least 5 of the 6" in section 3.4; "more than 5 out of 6" in appendix A is 6.
        reader_length: tokens of a window of the passage, with the question; the paper does not say its readers'.
        reader: the reader that proposed the answers.
        reader_votes: let the reader vote where it is also among `readers`; it would agree with itself.
        min_vote: the least probability of an answer that counts as a vote.
        no_answer_margin: see `hfcf.systems.rgf.retrieve.Read`; an answer that does not reach it does not count as a vote.
        elsewhere: reject a question if another passage of the row has another answer, likelier by more than this. The first reader
            answers it. Such a question needs its passage. None reads no other passage.
        keep: how many questions `Minimality` keeps; None asks about all.
        distance: the least and the greatest word edit distance that `Minimality` keeps.

    Raises:
        ValueError: `agree` is more than there are readers that vote, a reader is named twice, or `distance` is not a range.

    The paper lets every reader vote, whatever its probability, and reads no other passage; its proposals come from another model,
    REALM. Readers without probabilities, as language models, pass these checks.

    >>> RoundTrip(readers=(Model("a"), Model("b")), agree=3)
    Traceback (most recent call last):
    ValueError: agree must be at most 2, the number of readers, got 3
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {"question": TASK.columns["question"], "candidates": CANDIDATES}
    optional: ClassVar = {"passages": PASSAGES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "rgf.generate_question"}
    batch_size: ClassVar[int] = 32

    engines: ClassVar = (Reader, LanguageModel)

    readers: Annotated[Models, Prompted(), TrainedBy("train_reader")]
    agree: Positive = 5
    reader_length: Positive = 384
    reader: Annotated[Model, Prompted(), TrainedBy("train_reader")] | None = None
    reader_votes: bool = True
    min_vote: Share = 0.0
    no_answer_margin: Margin | None = None
    elsewhere: Margin | None = None
    keep: Positive | None = 1
    distance: Limits | None = None

    def check(self) -> None:
        check_agreement(self.readers, self.agree, self.voters)
        check_limits(self.distance)

    @property
    def voters(self) -> tuple[Model, ...]:
        """The readers that are asked."""
        return tuple(reader for reader in self.readers if self.reader_votes or reader != self.reader)

    def verifiers(self) -> tuple[str, list[Model]] | None:
        return ("the readers named above", list(self.voters)) if self.readers else None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state(PROMPTS, *self.voters)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if not self.readers:
            return [{"candidates": row["candidates"]} for row in rows]
        orders = [nearest_first(row["question"], row["candidates"], self.distance) for row in rows]
        verdicts: list[dict[int, Agreement]] = [{} for _ in rows]
        while wave := [
            (r, i) for r, (order, answered) in enumerate(zip(orders, verdicts, strict=True)) for i in self._next(order, answered)
        ]:
            counts = self._ask([rows[r]["candidates"][i] for r, i in wave])
            agreed = [place for place, count in zip(wave, counts, strict=True) if count >= self.agree]
            elsewhere = self._answered_elsewhere(rows, agreed)
            for (r, i), count in zip(wave, counts, strict=True):
                verdicts[r][i] = Agreement(count, self._why(count, (r, i) in elsewhere))
        results: list[dict[str, Any] | Reject] = []
        for row, order, answered in zip(rows, orders, verdicts, strict=True):
            judged = list(row["candidates"])
            for i in order:
                judged[i] = self._judge(judged[i], answered.get(i))
            results.append(settle(judged, "there is no question to answer"))
        return results

    def _next(self, order: Sequence[int], verdicts: Mapping[int, Agreement]) -> Sequence[int]:
        """Return the questions of a source to ask next, which depend on the source alone; none when enough have passed."""
        answered = len(verdicts)
        if self.keep is None:
            return order[answered:]
        if sum(verdict.why is None for verdict in verdicts.values()) >= self.keep:
            return ()
        return order[answered : answered + max(WAVE, answered)]

    def _ask(self, questions: Sequence[Candidate]) -> list[int]:
        """Count the readers that give the answer to each question, until its decision is certain."""
        counts = [0] * len(questions)
        for left, reader in zip(range(len(self.voters), 0, -1), self.voters, strict=True):
            if not (undecided_questions := [i for i, count in enumerate(counts) if self.agree - left <= count < self.agree]):
                break
            engine = Reader(model=reader, max_length=self.reader_length, n_best=1)
            requests = [[questions[i]["question"], questions[i]["context"], questions[i]["title"]] for i in undecided_questions]
            answers = read_answers(engine, requests, self.seed)
            for i, best in zip(undecided_questions, answers, strict=True):
                counts[i] += bool(best) and self._votes(best[0], questions[i])
        return counts

    def _votes(self, answer: Mapping[str, Any], question: Candidate) -> bool:
        sure = doubt(answer, self.min_vote, self.no_answer_margin) is None
        return sure and matches(answer["text"], question["answers"]["text"])

    def _answered_elsewhere(self, rows: Sequence[dict[str, Any]], places: Sequence[Place]) -> set[Place]:
        """Return the questions to which the first reader prefers another answer in another passage of the row."""
        if (edge := self.elsewhere) is None:
            return set()
        engine = Reader(model=self.voters[0], max_length=self.reader_length, n_best=1)
        groups = []
        for r, i in places:
            question = rows[r]["candidates"][i]
            others = [
                passage
                for passage in rows[r]["passages"] or []
                if passage["text"] != question["context"] and passage_problem(passage) is None
            ]
            texts = [(question["title"], question["context"]), *((passage["title"], passage["text"]) for passage in others)]
            groups.append([[question["question"], text, title or ""] for title, text in texts])
        answers_to = iter(read_answers(engine, [request for group in groups for request in group], self.seed))
        first_answers = [[found[0] if (found := next(answers_to)) else None for _ in group] for group in groups]
        return {
            (r, i)
            for (r, i), answers in zip(places, first_answers, strict=True)
            if any(
                exceeds(gain, edge) and not matches(other["text"], rows[r]["candidates"][i]["answers"]["text"])
                for other, gain in _gains(answers)
            )
        }

    def _why(self, count: int, elsewhere: bool) -> str | None:
        if count < self.agree:
            return f"fewer than {self.agree} of {len(self.voters)} readers give the answer"
        return "another passage gives a likelier answer" if elsewhere else None

    def _judge(self, candidate: Candidate, verdict: Agreement | None) -> Candidate:
        if verdict is None:
            nearer = "a nearer question" if self.keep == 1 else f"{self.keep} nearer questions"
            return reject(candidate, self.name, f"not asked: {nearer} passed")
        candidate = {**candidate, "scores": [*candidate["scores"], {"name": AGREE, "value": float(verdict.votes)}]}
        return candidate if verdict.why is None else reject(candidate, self.name, verdict.why)


def _gains(answers: Sequence[Any]) -> list[tuple[Any, float]]:
    """List the answers of other passages, each with what it is likelier than the own passage's; none without probabilities."""
    best, *others = answers
    if best and best["probability"] is None:
        return []
    least = best["probability"] if best else 0.0
    return [(other, other["probability"] - least) for other in others if other and other["probability"] is not None]


def check_agreement(readers: Sequence[Model], agree: int, voters: Sequence[Model]) -> None:
    if twice := next((reader for i, reader in enumerate(readers) if reader in readers[:i]), None):
        raise ValueError(f"readers: {twice.name!r} is named twice: it would only agree with itself")
    if readers and agree > len(voters):
        without = " without the one that proposes answers (reader_votes=False)" if len(voters) < len(readers) else ""
        raise ValueError(f"agree must be at most {len(voters)}, the number of readers{without}, got {agree}")
