"""Questions for answers in passages (RGF, section 3.3)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf import prompts
from hfcf.core.candidates import Candidate, reject, scored, settle, undecided
from hfcf.core.decisions import exceeds, ranked, reaches
from hfcf.core.edits import plain_words
from hfcf.core.model import Model, is_prompted
from hfcf.core.settings import LogProbability, Positive, Prompted, TrainedBy, Weight, check_search
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.llm.engine import LanguageModel
from hfcf.engines.question_generator import QuestionGenerator
from hfcf.engines.retriever import Retriever
from hfcf.engines.retriever.bm25 import words_of
from hfcf.prompts.edits import ask_edits
from hfcf.systems.rgf.answer_candidates import CANDIDATES, QUESTION, READER, value
from hfcf.systems.rgf.retrieve import PROMPTS, WORDS, Collection
from hfcf.tasks.qa import TASK
from hfcf.text.check import text_problem
from hfcf.text.normalise import normalise_answer
from hfcf.text.questions import mark_answer
from hfcf.text.words import FUNCTION_WORDS

EDITS = 2
"""The most edits of a question: with the second, its first words may ask for an answer of another type."""


@dataclass(frozen=True, kw_only=True)
class GenerateQuestion(Stage):
    """Write questions that the answer of a passage answers.

    Input columns: `question`, `candidates`. Output column: `candidates`: each undecided pair of passage and answer becomes a
    candidate for each question, in the order of the beam search. The model reads `title » passage` with the answer marked; of a
    long passage, a window around the answer (`hfcf.engines.question_generator.QuestionGenerator`). A question is rejected if it is
    cut off. It is also rejected if it has the words of the source's question, or of a better question for the same answer and
    passage. With `max_answers`, the other answers are rejected unasked.

    Args:
        generator: an encoder-decoder or decoder-only model, trained on passage and answer → question
            (`recipes/train_question_generator.yaml`); or "llm:NAME" for a language model behind an endpoint.
        questions: questions to an answer. Section 3.3 generates 15 for each, of which section 3.4 keeps the nearest question that
            passes its filter; appendix A takes "the top candidate": 1. The default is the main text's, on which the selection
            rests.
        num_beams: beams of the search: 15 in section 3.3 and appendix A.
        max_new_tokens: tokens of the longest question: 256 in appendix A.
        max_length: tokens of title and passage: 640 in appendix A.
        min_log_probability: the least log-probability of a question, as a mean over its tokens: a small generator is less sure of
            questions that are not fluent. The paper has no such floor. A language model's questions have none and pass.
        max_answers: how many different answers of a row get questions, the likeliest first; an answer that several passages have
            is asked about in the passage where it is likeliest. A language model takes a request for each answer, and so many
            decide what a row costs. None, as in section 3.3, asks about every answer in every passage.
        near_source: a language model edits the source's question, in up to two places, with a request for each question. A
            question without a word of its passage that the source's lacks is rejected: it has the source's answer. A trained
            generator, as in the paper, does not know that question; what is near it is chosen afterwards.
        max_ambiguity: the most other passages of the collection that may be expected to have all content words that a question
            shares with its passage, if words came independently of each other. "What is the name of the stadium" fits many
            passages, and can't be asked without its own. None, as in the paper, lets such questions pass.
        passages: the collection whose words `max_ambiguity` counts, with the index of BM25, which is built for it also where
            retrieval is dense.

    Raises:
        StageError: `max_ambiguity` without a collection.

    >>> GenerateQuestion(generator=Model("me/t5-questions"), questions=1).num_beams
    15
    """

    inputs: ClassVar = {"question": TASK.columns["question"], "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "the stage that finds answers"}
    batch_size: ClassVar[int] = 32

    engines: ClassVar = (QuestionGenerator, LanguageModel, Retriever)

    generator: Annotated[Model, Prompted(), TrainedBy("train_question_generator")]
    questions: Positive = 15
    num_beams: Positive = 15
    max_new_tokens: Positive = 256
    max_length: Positive = 640
    min_log_probability: LogProbability | None = None
    max_answers: Positive | None = None
    near_source: bool = False
    max_ambiguity: Weight | None = None
    passages: Collection = None

    def check(self) -> None:
        if not is_prompted(self.generator):
            check_search(self.num_beams, questions=self.questions)

    def check_fitted(self) -> None:
        if self.max_ambiguity is not None and self.passages is None:
            raise StageError(f"{self.name}: max_ambiguity needs a collection: give the system passages=…, or leave it out")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state(PROMPTS, self.generator)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if self.max_answers is not None:
            rows = [{**row, "candidates": self._choose(row["candidates"], self.max_answers)} for row in rows]
        engine = QuestionGenerator(
            model=self.generator, num_beams=self.num_beams, num_return_sequences=self.questions,
            max_new_tokens=self.max_new_tokens, max_length=self.max_length,
        )  # fmt: skip
        asked = [(row["question"], place(candidate)) for row in rows for candidate in row["candidates"] if undecided(candidate)]
        sources = [question for question, _ in asked] if self.near_source and is_prompted(self.generator) else None
        answers = iter(write_questions(engine, [one for _, one in asked], self.seed, sources))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            candidates: list[Candidate] = []
            for candidate in row["candidates"]:
                candidates += self._ask(row["question"], candidate, next(answers)) if undecided(candidate) else [candidate]
            results.append(settle(candidates, "there is no answer to ask for"))
        return results

    def _choose(self, candidates: Sequence[Candidate], number: int) -> list[Candidate]:
        """Reject all but the likeliest different answers; readers without probabilities leave them in the order of passages."""
        chosen, results = set[str](), list(candidates)
        open_places = [i for i, candidate in enumerate(candidates) if undecided(candidate)]
        for i in ranked(open_places, lambda i: value(candidates[i], READER), lambda i: i):
            answer = normalise_answer(candidates[i]["answers"]["text"][0])
            if answer in chosen:
                results[i] = reject(candidates[i], self.name, "not asked: the answer is asked about in another passage")
            elif len(chosen) == number:
                results[i] = reject(candidates[i], self.name, f"not asked: {number} likelier answers of the row are")
            else:
                chosen.add(answer)
        return results

    def _ask(self, source: str, answer: Candidate, texts: Any) -> list[Candidate]:
        if why := prompts.failure(texts):
            return [reject(answer, self.name, why)]
        if texts is None:
            return [reject(answer, self.name, "the answer is longer than the question generator reads")]
        if not texts:
            return [reject(answer, self.name, "the question generator wrote nothing")]
        candidates, seen = [], {tuple(plain_words(source)): "repeats the source's question"}
        for text in texts:
            scores = [*answer["scores"], *([] if text["score"] is None else [scored(QUESTION, text["score"])])]
            candidate, key = {**answer, "question": text["text"], "scores": scores}, tuple(plain_words(text["text"]))
            if not text["finished"]:
                candidate = reject(candidate, self.name, f"is cut off at {self.max_new_tokens} tokens")
            elif why := text_problem(text["text"], "the question") or text.get("fault") or seen.get(key):
                candidate = reject(candidate, self.name, why)
            elif self.near_source and is_prompted(self.generator) and _asks_the_same(source, candidate):
                candidate = reject(candidate, self.name, "asks for nothing of the passage that the source's question does not name")
            elif self._is_unlikely(text["score"]):
                candidate = reject(
                    candidate, self.name, f"the log-probability of the question is under {self.min_log_probability:g}"
                )
            elif self._is_ambiguous(candidate):
                candidate = reject(candidate, self.name, "names too little: its words fit other passages as well")
            else:
                seen[key] = "repeats another question for the same answer"
            candidates.append(candidate)
        return candidates

    def _is_ambiguous(self, candidate: Candidate) -> bool:
        if self.max_ambiguity is None:
            return False
        assert self.passages is not None
        told = {*words_of(f"{candidate['title']} {candidate['context']}")}
        shared = sorted(({*words_of(candidate["question"])} & told) - FUNCTION_WORDS)
        others = len(self.passages.open()) - 1
        # The passages that have a word, but for the candidate's own.
        counts = [max(count - 1, 0) for count in Retriever(passages=self.passages).frequencies(shared)]
        expected = others * math.prod(count / others for count in counts) if others > 0 else 0.0
        return exceeds(expected, self.max_ambiguity)

    def _is_unlikely(self, score: float | None) -> bool:
        floor = self.min_log_probability
        return score is not None and floor is not None and not reaches(score, floor)


def _asks_the_same(source: str, candidate: Candidate) -> bool:
    """Whether a question has no content word of its passage that the source's question lacks: that one, in other words."""
    told = prompts.content_words(f"{candidate['title']} {candidate['context']}")
    return not (prompts.content_words(candidate["question"]) - prompts.content_words(source)) & told


def place(candidate: Mapping[str, Any]) -> list[Any]:
    """Return title, passage, start and end of a candidate's answer."""
    (text,), (start,) = candidate["answers"]["text"], candidate["answers"]["answer_start"]
    return [candidate["title"], candidate["context"], start, start + len(text)]


def write_questions(
    engine: QuestionGenerator, requests: Sequence[Any], seed: int, sources: Sequence[str] | None = None
) -> list[Any]:
    """Answer as `QuestionGenerator` does, by its model or over an endpoint.

    A language model reads the words around the answer of a long passage. It is asked for all questions at once; with `sources`, the
    questions to stay near to, for edits of them instead (`hfcf.prompts.edits`). It gives no scores: they are None, and its order
    counts. Instead of a list, an answer may be `{"error": why}`.
    """
    if not is_prompted(engine.model):
        return engine.run(requests)
    number = engine.num_return_sequences
    rows = []
    for title, context, start, end in requests:
        first = [match.start() for match in re.finditer(r"\S+", context[:start])][-WORDS:][:1]
        last = [match.end() for match in re.finditer(r"\S+", context[end:])][:WORDS][-1:]
        window = mark_answer(context, start, end)[first[0] if first else 0 :]
        window = window[: len(window) - (len(context) - end - last[0])] if last else window
        rows.append({"title": title, "marked": window, "answer": context[start:end]})
    max_tokens = engine.max_new_tokens * number
    if sources is not None:
        rows = [{**row, "question": source} for row, source in zip(rows, sources, strict=True)]
        return ask_edits(
            engine.model, "question_edits", rows, sources, number=number, most=EDITS, max_tokens=engine.max_new_tokens, seed=seed
        )
    return prompts.ask_texts(engine.model, "questions", rows, number=number, max_tokens=max_tokens, seed=seed)
