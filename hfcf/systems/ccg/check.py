"""Check candidates by models that had no part in writing them: is the new relation said, and is the sentence still fluent?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.classifier import choose
from hfcf.engines.perplexity import Perplexity
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.ccg.indicator import UNJUDGED, ask_indicators
from hfcf.tasks.relation import CANDIDATES, TASK, requests

Row = Mapping[str, Any]

_TOO_LONG = "longer than the indicator reads"


@dataclass(frozen=True, kw_only=True)
class CheckRelation(Stage):
    """Reject the candidates whose new relation an indicator does not predict, and those that are far less fluent than their source.

    Input columns: `tokens`, `head`, `tail`, `label`, `candidates`. Output column: `candidates`: the indicator's probability of its
    own prediction and the loss of fluency are added to the scores, and the first check that fails is the reason. A row is rejected
    when no candidate is left. Without models nothing is checked.

    It is the consistency filter of MICE, AutoCAD and CoCo, with their base model. CCG's paper has no such filter; with it, its
    indicators are others than those that found the causal terms (`CCG.judge_folds`).

    Args:
        indicator: an R-BERT; None: only those of `cross_fitted`, if there are any.
        cross_fitted: the sha256 of a file that gives each row an indicator which was not trained on it
            (`hfcf.systems.ccg.indicator.cross_fit`); rows that it does not know have `indicator`.
        required: whether the system wants an indicator: without one it is an error, else nothing is checked.
        least_probability: the indicator must predict the relation with at least this probability, from 0 to 1.
        language_model: a decoder-only language model that compares the sentences; None compares none.
        most_loss: how much the mean negative log-likelihood of a token may rise, times the sentence's words, in nats: the mean
            alone would hide a wrong word of a long sentence.
        max_length: pieces of a sentence that the indicator reads.

    >>> row = {"id": "1", "tokens": "eggs in buckets".split(), "label": "in", "status": None, "candidates": []}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None}}
    >>> CheckRelation()(row)["candidates"]
    []
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    indicator: Model | None = None
    cross_fitted: str | None = None
    required: bool = False
    least_probability: float = 0.0
    language_model: Model | None = None
    most_loss: float = 0.0
    max_length: int = 128

    def __post_init__(self) -> None:
        if not 0 <= self.least_probability <= 1:
            raise ValueError(f"least_probability={self.least_probability}: it is a probability, from 0 to 1")

    def check_fitted(self) -> None:
        if self.required and self.indicator is None and self.cross_fitted is None:
            raise StageError(
                f"{self.name} has no indicator: run system = system.fit_models(ds), which trains them on the rows of ds"
            )

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        of_rows: list[list[Candidate]] = [list(row["candidates"]) for row in rows]
        for check in (self._check_relations, self._check_fluency):
            places = [(i, n) for i, group in enumerate(of_rows) for n, one in enumerate(group) if undecided(one)]
            for (i, n), one in zip(places, check([(rows[i], of_rows[i][n]) for i, n in places]), strict=True):
                of_rows[i][n] = one
        # A row without candidates stays as it is: the stage that decides says why.
        return [settle(group, "") if group else {"candidates": []} for group in of_rows]

    def _check_relations(self, pairs: list[tuple[Row, Candidate]]) -> list[Candidate]:
        if not pairs or (self.indicator is None and self.cross_fitted is None):
            return [one for _, one in pairs]
        edited = [TASK.counterfactual_row(row, one) for row, one in pairs]

        def ask(indicator: Model, part: list[Row]) -> list[Mapping[str, float] | str | None]:
            return list(RelationClassifier(model=indicator, max_length=self.max_length).run(requests(part, indicator)))

        unjudged: Mapping[str, float] | str | None = UNJUDGED
        answers = ask_indicators(self, [row["id"] for row, _ in pairs], edited, ask, unjudged)
        return [self._relation(one, answer) for (_, one), answer in zip(pairs, answers, strict=True)]

    def _relation(self, one: Candidate, answer: Mapping[str, float] | str | None) -> Candidate:
        if not isinstance(answer, Mapping):
            return reject(one, self.name, _TOO_LONG if answer is None else answer)
        if one["label"] not in answer:
            return reject(one, self.name, f"the indicator does not know {one['label']}")
        label = choose(answer, sorted(answer))
        one = {**one, "scores": [*one["scores"], {"name": f"indicator: {label}", "value": answer[label]}]}
        if label != one["label"]:
            return reject(one, self.name, f"the indicator says {label}")
        if answer[label] < self.least_probability:
            return reject(one, self.name, f"the indicator's probability of the relation is below {self.least_probability:g}")
        return one

    def _check_fluency(self, pairs: list[tuple[Row, Candidate]]) -> list[Candidate]:
        if not pairs or self.language_model is None:
            return [one for _, one in pairs]
        texts = [text for row, one in pairs for text in (" ".join(row["tokens"]), one["text"])]
        answers = iter(Perplexity(model=self.language_model).run(texts))
        return [self._fluency(one, answers) for _, one in pairs]

    def _fluency(self, one: Candidate, answers: Iterator[float | None]) -> Candidate:
        before, after = next(answers), next(answers)
        if before is None or after is None:
            return reject(one, self.name, "longer than the language model reads")
        loss = round((math.log(after) - math.log(before)) * len(one["text"].split()), 5)
        one = {**one, "scores": [*one["scores"], {"name": "loss of fluency", "value": loss}]}
        return (
            reject(one, self.name, f"less fluent than its source by more than {self.most_loss:g}") if loss > self.most_loss else one
        )
