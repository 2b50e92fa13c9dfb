"""What changes in a question: its references, its predicate or both (RGF, section 3.5); the counterfactuals."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from datasets import List

from hfcf.core.candidates import undecided
from hfcf.core.model import Model
from hfcf.core.schema import TEXT
from hfcf.core.settings import Positive, TrainedBy
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.ner import check_pipeline
from hfcf.engines.parser import NounPhrases
from hfcf.engines.question_generator import Decomposer
from hfcf.systems._shared.judge import decide
from hfcf.systems.rgf.answer_candidates import CANDIDATES
from hfcf.systems.rgf.generate_question import place
from hfcf.tasks.qa import TASK, rewrite_all
from hfcf.text.questions import Span, compare_questions, predicate, read_references

log = logging.getLogger(__name__)

DECOMPOSITIONS = List({"question": TEXT, "predicate": TEXT, "references": List(TEXT), "by": TEXT})
"""How the questions of a row were taken apart; `by` is "QED" or "noun phrases"."""
QED, PHRASES = "QED", "noun phrases"
BY = "references by "
"""What the name of the score begins with that says how a question was taken apart."""


@dataclass(frozen=True, kw_only=True)
class Categorise(Stage):
    """Find what changes from the source's question to each new question; accept the new questions and write the counterfactuals.

    Input columns: the task's, `candidates`. Output columns: `candidates`, `decompositions` and `counterfactuals`. The `change` of
    a candidate is "reference", "predicate", "both" or "question" (unknown; `hfcf.text.questions.compare_questions` has the rules).
    `decompositions` are the predicate and the references of the source's question and of the questions of accepted candidates.

    The score "references by QED" or "references by noun phrases" of each accepted candidate is the number of its references.

    Deviations: the paper categorises evaluation data only, by exact match of strings; here every counterfactual is categorised,
    and case does not count.

    Args:
        system: the system's name in provenance.
        decomposer: an encoder-decoder or decoder-only model trained on QED (`hfcf.engines.question_generator.Decomposer`);
            the paper's is T5-large. None takes the noun phrases of the question for its references, which is much coarser.
        phrases: the spaCy pipeline that finds the noun phrases.
        max_length: tokens that the decomposer reads.

    >>> list(Categorise(system="rgf").outputs)
    ['candidates', 'decompositions', 'counterfactuals']
    """

    inputs: ClassVar = {**TASK.features, "candidates": CANDIDATES}
    outputs: ClassVar = {
        "candidates": CANDIDATES, "decompositions": DECOMPOSITIONS, "counterfactuals": List(dict(TASK.counterfactual)),
    }  # fmt: skip
    produced_by: ClassVar = {"candidates": "rgf.minimality"}

    engines: ClassVar = (Decomposer, NounPhrases)

    system: str = "rgf"
    decomposer: Annotated[Model, TrainedBy("train_decomposer")] | None = None
    phrases: Model = Model("offline:spacy")
    max_length: Positive = 640

    def check_available(self) -> None:
        """Raise if noun phrases are needed and spaCy or its pipeline is not installed."""
        if self.decomposer is None:
            check_pipeline("spacy", self.phrases, "noun phrases", f"{self.name}: phrases")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        questions = [[row, *(candidate for candidate in row["candidates"] if undecided(candidate))] for row in rows]
        spans = iter(self._references([candidate for group in questions for candidate in group]))
        by = QED if self.decomposer else PHRASES
        written, decompositions = [], []
        for row in rows:
            source, parts = (row["question"], next(spans)), []
            parts.append(_decomposition(*source, by))
            candidates = []
            for candidate in row["candidates"]:
                if undecided(candidate):
                    new = (candidate["question"], next(spans))
                    parts.append(_decomposition(*new, by))
                    candidate = {
                        **candidate, "change": compare_questions(source, new),
                        "edits": rewrite_all(row, **{name: candidate[name] for name in TASK.columns}),
                        "scores": [*candidate["scores"], {"name": f"{BY}{by}", "value": float(len(new[1]))}],
                    }  # fmt: skip
                candidates.append(candidate)
            written.append({**row, "candidates": candidates})
            decompositions.append(parts)
        results = decide(self.name, self.system, written, None)
        return [
            result if isinstance(result, Reject) else {**result, "decompositions": parts}
            for result, parts in zip(results, decompositions, strict=True)
        ]

    def _references(self, questions: list[Mapping[str, Any]]) -> list[list[Span]]:
        if self.decomposer is None:
            texts = NounPhrases(model=self.phrases).run([question["question"] for question in questions])
            return [[(start, end) for start, end in spans] for spans in texts]
        engine = Decomposer(model=self.decomposer, max_length=self.max_length)
        answers = engine.run([[question["question"], *_first_place(question)] for question in questions])
        # None: the answer alone is longer than the model reads, which leaves the question without references.
        return [
            read_references(texts[0]["text"], question["question"]) if texts else []
            for question, texts in zip(questions, answers, strict=True)
        ]


@cache
def _warn_of_phrases(system: str) -> None:
    log.warning(
        "%s: the setting decomposer is not given, so that the noun phrases of a question are taken for its references: the paper's "
        "is T5-large, trained on QED. Train one by hfcf train train_decomposer, or read the changes as coarse",
        system,
    )


def warn_of_phrases(system: System, preset: str) -> None:
    """Warn once of a system whose preset has the paper's settings, but no decomposer; other presets choose noun phrases."""
    if preset == "paper" and system.decomposer is None:
        _warn_of_phrases(system.name)


def _first_place(row: Mapping[str, Any]) -> list[Any]:
    """Return title, passage, start and end of a row's first answer; the passage's beginning for an answer without a place."""
    answers = row["answers"]
    if not answers["answer_start"]:
        return [row["title"] or "", row["context"] or "", 0, 0]
    return place({**row, "title": row["title"] or "", "answers": {name: answers[name][:1] for name in answers}})


def _decomposition(question: str, spans: list[Span], by: str) -> dict[str, Any]:
    references = [question[start:end] for start, end in spans]
    return {"question": question, "predicate": predicate(question, spans), "references": references, "by": by}
