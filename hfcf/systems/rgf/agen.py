"""Stages of the Agen-Qgen baselines: passages and answers that do not depend on the question (RGF, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf.core.bound_stage import BoundStage
from hfcf.core.model import Model
from hfcf.core.settings import NonNegative, Positive, TrainedBy
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.question_generator import AnswerGenerator
from hfcf.systems.rgf.answer_candidates import (
    ALIASES,
    ANSWER,
    CANDIDATES,
    PASSAGES,
    PATTERNS,
    Found,
    Row,
    answer_candidates,
    why_not_comparable,
)
from hfcf.systems.rgf.generate_question import GenerateQuestion
from hfcf.systems.rgf.retrieve import NO_COLLECTION, Collection
from hfcf.systems.rgf.round_trip import RoundTrip
from hfcf.systems.rgf.system import OFFLINE, PAPER, RGF
from hfcf.tasks.qa import ANSWERS, TASK
from hfcf.text.phrase_match import find_answer

SENTENCE_ENDS = (".", "!", "?", "。", "।", "؟")
DRAWS = 1_000
"""How many passages are drawn for a row before it is rejected."""


@dataclass(frozen=True, kw_only=True)
class TakeContext(Stage):
    """Take the row's own passage: c′ = c (Gold Agen-Qgen).

    Input columns: the task's. Output column: `passages`, one passage, without rank and score. A row without a context or an answer
    is rejected.

    >>> row = {"id": "7", "title": "", "context": "Ada wrote it.", "question": "who?", "answers": {"text": ["Ada"]}}
    >>> TakeContext().row(row)["passages"][0]["text"]
    'Ada wrote it.'
    """

    inputs: ClassVar = TASK.columns
    optional: ClassVar = PATTERNS
    outputs: ClassVar = {"passages": PASSAGES}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        check_row(row)
        if not row["context"]:
            raise Reject("the row has no context")
        return {"passages": [_passage(row["id"], row["title"] or "", row["context"])]}


@dataclass(frozen=True, kw_only=True)
class DrawPassage(Stage):
    """Draw a passage of the collection at random, whatever the question (Rand. Agen-Qgen).

    Input columns: the task's. Output column: `passages`, one passage, without rank and score. The draw depends on the row's id and
    the seed.

    Deviation: the paper's passages are drawn by PAQ's learned selector, which is not packaged. Such passages look like the
    passages that Natural Questions asks about. Here all passages of at least `min_words` words that end like a sentence are
    equally likely. This leaves out headings, stubs and most lists and tables.

    Args:
        passages: the collection.
        min_words: words of a passage, as white space divides them.

    Raises:
        StageError: there is no collection.

    >>> from hfcf.core.passage_store import Passages
    >>> DrawPassage(passages=Passages("a sha256")).min_words
    20
    """

    inputs: ClassVar = TASK.columns
    optional: ClassVar = PATTERNS
    outputs: ClassVar = {"passages": PASSAGES}

    passages: Collection = None
    min_words: NonNegative = 20

    def check_fitted(self) -> None:
        if self.passages is None:
            raise StageError(f"{self.name} {NO_COLLECTION}")

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        check_row(row)
        assert self.passages is not None
        collection, draw = self.passages.open(), self.random(row["id"])
        for _ in range(DRAWS):
            passage = collection[draw.randrange(len(collection))]
            if len(passage["text"].split()) >= self.min_words and passage["text"].rstrip(" \"'”’)»").endswith(SENTENCE_ENDS):
                return {"passages": [_passage(passage["id"], passage["title"], passage["text"])]}
        raise Reject(f"none of {DRAWS} passages that were drawn has {self.min_words} words and ends like a sentence")


def check_row(row: Mapping[str, Any]) -> None:
    """Raise `Reject` for a row without an answer that another answer could differ from."""
    if why := why_not_comparable(row):
        raise Reject(why)


def _passage(name: str, title: str, text: str) -> dict[str, Any]:
    return {"id": name, "title": title, "text": text, "score": None, "rank": None}


@dataclass(frozen=True, kw_only=True)
class GenerateAnswer(Stage):
    """Write likely answers of a passage without any question; keep answers that are not gold answers (section 5.1).

    Input columns: `answers`, `passages`, and `aliases` where the corpus has it. Output column: `candidates`, one for each text of
    the beam search, the best first, without a question yet. The model reads `title » passage` (appendix A). The answer is the first
    place where the passage has the text as whole words, with its case or else without. A text that the passage does not have is
    rejected; so is what `hfcf.systems.rgf.retrieve.Read` rejects.

    Args:
        answerer: an encoder-decoder or decoder-only model, trained on passage → answer.
        answers: how many texts of the search are taken: 15 in section 5.1.
        num_beams: beams of the search; at least as many as `answers` are taken. Appendix A gives the answer generator the question
            generator's settings: 15 beams, 640 and 256 tokens.
        max_length: tokens of title and passage; the rest is not read.
        max_answer: tokens of the longest answer.
        keep_partial: keep an answer that holds a gold answer, or is part of it; see `hfcf.systems.rgf.retrieve.Read`.

    >>> GenerateAnswer(answerer=Model("me/t5-answers")).answers
    15
    """

    inputs: ClassVar = {"answers": ANSWERS, "passages": PASSAGES}
    optional: ClassVar = ALIASES
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"passages": "the stage that chooses passages"}
    batch_size: ClassVar[int] = 32

    engines: ClassVar = (AnswerGenerator,)

    answerer: Annotated[Model, TrainedBy("train_answer_generator")]
    answers: Positive = 15
    num_beams: Positive = 15
    max_length: Positive = 640
    max_answer: Positive = 256
    keep_partial: bool = True

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        engine = AnswerGenerator(
            model=self.answerer, num_beams=max(self.num_beams, self.answers), num_return_sequences=self.answers,
            max_new_tokens=self.max_answer, max_length=self.max_length,
        )  # fmt: skip

        def ask(passages: Sequence[tuple[Row, Row]]) -> Iterator[list[Found]]:
            texts = engine.run([[passage["title"], passage["text"]] for _, passage in passages])
            for (_, passage), written in zip(passages, texts, strict=True):
                yield [(*find_answer(text["text"], passage["text"]), [(ANSWER, text["score"])], None) for text in written]

        return answer_candidates(self.name, rows, ask, keep_partial=self.keep_partial)


CHAIN = (
    GenerateAnswer,
    BoundStage(GenerateQuestion, fixed={"max_ambiguity": None, "passages": None}),
    BoundStage(RoundTrip, fixed={"reader": None, "reader_votes": True}),
    *RGF.chain[4:],
)
"""What follows the passages in both baselines: answers, then RGF's questions and filters; no reader proposes answers."""
_ANSWERING = {"answerer": Model("offline:t5", adapter="hfcf:answer_generator"), "answers": 8, "max_answer": 32}
PRESETS: dict[str, Mapping[str, Any]] = {"paper": {"reader_length": PAPER["reader_length"]}, "offline": {**OFFLINE, **_ANSWERING}}
