"""Near misses of a question: the passages that a retriever finds for it, and other answers in them (RGF, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from hfcf import prompts
from hfcf.core.decisions import reaches
from hfcf.core.model import Model, is_prompted
from hfcf.core.passage_store import Passages
from hfcf.core.settings import Positive, Prompted, Share, TrainedBy
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.llm.engine import LanguageModel
from hfcf.engines.reader import Reader, drop_overlapping
from hfcf.engines.retriever import INDEX, Retriever
from hfcf.systems.rgf.answer_candidates import (
    ALIASES,
    CANDIDATES,
    PASSAGES,
    PATTERNS,
    READER,
    Found,
    Row,
    answer_candidates,
    why_not_comparable,
)
from hfcf.tasks.qa import ANSWERS, TASK
from hfcf.text.phrase_match import find_answer

WORDS = 300
"""Words of a passage on either side of the answer that a language model is shown, and half of the words that it reads."""
PROMPTS = ("questions", "question_edits", "answers")
"""The prompts by which a language model is question generator and reader, in the state of all stages that ask it."""
NO_COLLECTION = (
    "takes passages from a collection, and has none: give the system passages=…, a file or a "
    "Dataset with the columns title and text"
)


def refer_to(collection: Any) -> Passages | None:
    """Return the reference to a collection of passages; None stays None.

    Args:
        collection: a reference, a `Dataset`, a file, or what else a recipe writes: see `hfcf.corpora.passages.from_recipe`.

    >>> refer_to({"sha": "a sha256"})
    Passages(sha='a sha256')
    """
    if collection is None or isinstance(collection, Passages):
        return collection
    if isinstance(collection, Mapping) and set(collection) == {"sha"}:  # as `System.settings` writes a reference
        return Passages(**collection)
    from hfcf.corpora.passages import from_recipe

    return from_recipe(collection)


Collection = Annotated[Passages | None, BeforeValidator(refer_to)]
"""The type of a setting: a collection of passages."""


@dataclass(frozen=True, kw_only=True)
class Retrieve(Stage):
    """Find the passages that are nearest to the question.

    Input columns: the task's. Output column: `passages`, the best first, with `rank` from 1. A row without an answer, or
    whose answers are patterns, is rejected; a row without a context (an open question) is not. The source's own passage may be
    among the passages, as in the paper: another answer in it also gives a counterfactual.

    The default is BM25, which needs no model; `hfcf.engines.retriever.Retriever` names the substitutes for the paper's REALM.

    Args:
        passages: the collection: a `Passages`, a `Dataset` with the column `text` (and `id`, `title`), a file, or what else
            `hfcf.corpora.passages.from_recipe` reads. Needed when the stage runs, and not before.
        k: passages to a question. Section 3.2 writes k without its value; 20 is the number of candidates for each question with
            which section 6.2 begins.
        retrieval: "bm25" or "dense". The paper's is dense (section 3.2), as in the preset "paper".
        encoder: the encoder of questions, for "dense".
        passage_encoder: the encoder of passages, for "dense"; by default that of questions.
        pooling: "mean", "cls" or "pooler", for "dense".
        index: the index, for "dense", as a string of FAISS's `index_factory`. REALM's search (appendix A names its code) is
            approximate as well; "Flat" is exact, and reads all vectors for each batch of questions. For millions of passages see
            `hfcf.engines.retriever.Retriever`.
        index_search: how thoroughly an approximate index searches, such as "nprobe=64".

    Raises:
        ValueError: `index` without "dense". When the index is built: see `hfcf.engines.retriever.Retriever`.
        StageError: there is no collection.

    >>> Retrieve(passages=Passages("a sha256")).k
    20
    """

    inputs: ClassVar = TASK.columns
    optional: ClassVar = PATTERNS
    outputs: ClassVar = {"passages": PASSAGES}

    engines: ClassVar = (Retriever,)

    passages: Collection = None
    k: Positive = 20
    retrieval: Literal["bm25", "dense"] = "bm25"
    encoder: Model | None = None
    passage_encoder: Model | None = None
    pooling: Literal["mean", "cls", "pooler"] = "mean"
    index: str = INDEX["index"]
    index_search: str = INDEX["index_search"]

    def check(self) -> None:
        self._engine(Passages(""))  # checks the settings

    def check_fitted(self) -> None:
        if self.passages is None:
            raise StageError(f"{self.name} {NO_COLLECTION}")

    def _engine(self, passages: Passages) -> Retriever:
        return Retriever(
            passages=passages, k=self.k, method=self.retrieval, model=self.encoder, passage_model=self.passage_encoder,
            pooling=self.pooling, index=self.index, index_search=self.index_search,
        )  # fmt: skip

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        reasons = [why_not_comparable(row) for row in rows]
        questions = [row["question"] for row, why in zip(rows, reasons, strict=True) if why is None]
        assert self.passages is not None
        hits = iter(self._engine(self.passages).run(questions))
        results: list[dict[str, Any] | Reject] = []
        for why in reasons:
            if why:
                results.append(Reject(why))
            elif not (passages := next(hits)):
                results.append(Reject("the retriever finds no passage for the question", passages=[]))
            else:
                results.append({"passages": [_passage(hit, rank) for rank, hit in enumerate(passages, 1)]})
        return results


def _passage(hit: Mapping[str, Any], rank: int) -> dict[str, Any]:
    return {**{name: hit[name] for name in ("id", "title", "text", "score")}, "rank": rank}


Margin = Annotated[float, Field(ge=-1, le=1)]
"""A difference of two probabilities."""


def doubt(answer: Mapping[str, Any], floor: float, margin: float | None) -> str | None:
    """Say why a reader is not sure enough of its answer, or None; `hfcf.core.decisions` says which scores are equal.

    Args:
        answer: an answer of `Reader`; an answer without a probability is not doubted.
        floor: the least probability.
        margin: by how much the probability must exceed that of no answer; None does not compare them.

    >>> doubt({"probability": 0.4, "no_answer": 0.5}, 0.3, 0.0)
    'the reader finds no answer likelier'
    """
    probability, no_answer = answer["probability"], answer["no_answer"]
    if probability is not None and not reaches(probability, floor):
        return f"the reader's probability is under {floor:g}"
    if margin is not None and None not in (probability, no_answer) and not reaches(probability - no_answer, margin):
        return "the reader finds no answer likelier" if not margin else f"the reader's answer is not {margin:g} likelier than none"
    return None


@dataclass(frozen=True, kw_only=True)
class Read(Stage):
    """Read answers to the source's question in the retrieved passages; keep the near misses: answers that are not gold answers.

    Input columns: `question`, `answers`, `passages`, and `aliases` where the corpus has it. Output column: `candidates`, one for
    each passage and answer, by rank and then by probability, without a question yet. An answer is rejected if it equals a gold
    answer or an alias after SQuAD's normalisation, or if that leaves nothing of it. So is an answer that is not at its place in
    the passage or repeats another answer of the same passage. The reader must also be sure enough of it.

    Deviation: REALM (section 3.2, appendix A) reads with a model that is trained together with its retriever. Here any extractive
    reader reads each passage by itself. An encoder-decoder may also read; its texts count where the passage has them.

    Args:
        reader: the reader, or "llm:NAME" for a language model behind an endpoint.
        n_best: answers that are read in each passage. Section 3.2 has one answer a'ᵢ for each passage c'ᵢ.
        reader_length: tokens of a window of the passage, with the question; the paper does not say REALM's.
        keep_partial: keep an answer that holds a gold answer, or is part of it. Section 3.2 retains every answer that "does not
            match any of the gold answers"; a match is taken as equality, as in its scores. The offline preset does not: a small
            reader often cuts the gold answer too short or too long.
        overlapping: keep answers that share words of the passage with a likelier answer; False reads other answers instead.
        min_probability: the least probability of an answer; see `hfcf.engines.reader.Reader`.
        no_answer_margin: by how much an answer must be more probable than none in its passage, from -1 to 1. None does not compare
            them.

    The paper has neither floor nor margin. Whether answers overlap matters only with several to a passage. Answers without a
    probability, as a language model's, pass both.

    >>> list(Read(reader=Model("me/reader")).outputs)
    ['candidates']
    """

    inputs: ClassVar = {"question": TASK.columns["question"], "answers": ANSWERS, "passages": PASSAGES}
    optional: ClassVar = ALIASES
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"passages": "rgf.retrieve"}
    batch_size: ClassVar[int] = 64

    engines: ClassVar = (Reader, LanguageModel)

    reader: Annotated[Model, Prompted(), TrainedBy("train_reader")]
    n_best: Positive = 1
    reader_length: Positive = 384
    keep_partial: bool = True
    overlapping: bool = True
    min_probability: Share = 0.0
    no_answer_margin: Margin | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state(PROMPTS, self.reader)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        engine = Reader(
            model=self.reader, max_length=self.reader_length, n_best=self.n_best, overlapping=self.overlapping
        )  # fmt: skip

        def ask(passages: Sequence[tuple[Row, Row]]) -> Iterator[list[Found]]:
            requests = [[row["question"], passage["text"], passage["title"] or ""] for row, passage in passages]
            for spans in read_answers(engine, requests, self.seed):
                doubts = [doubt(span, self.min_probability, self.no_answer_margin) for span in spans]
                yield [(s["text"], s["start"], [(READER, s["probability"])], why) for s, why in zip(spans, doubts, strict=True)]

        return answer_candidates(self.name, rows, ask, keep_partial=self.keep_partial)


def read_answers(engine: Reader, requests: Sequence[Any], seed: int) -> list[Any]:
    """Answer `[question, context, title]` requests as `Reader` does, by its model or over an endpoint.

    A language model's answers are searched in the passage; their probabilities and scores are None. It reads the beginning of a
    long passage. A question that it can't answer, even in several attempts, has no answer.
    """
    if not is_prompted(engine.model):
        return engine.run(requests)
    rows = []
    for question, context, title in requests:
        last = [match.end() for match in re.finditer(r"\S+", context)][: 2 * WORDS][-1:]
        rows.append({"title": title, "context": context[: last[0]] if last else "", "question": question})
    settings = {"number": engine.n_best, "max_tokens": 64 + 64 * engine.n_best, "seed": seed}
    answers = prompts.ask_texts(engine.model, "answers", rows, **settings)
    results = []
    for answer, (_, context, _) in zip(answers, requests, strict=True):
        places = [] if prompts.failure(answer) else [find_answer(text["text"], context) for text in answer]
        unscored = {"score": None, "probability": None, "no_answer": None}
        found = [
            {"text": text, "start": start, "end": start + len(text) if start >= 0 else -1, **unscored} for text, start in places
        ]
        results.append((found if engine.overlapping else drop_overlapping(found))[: engine.n_best])
    return results
