"""Check CCG's candidates: does the sentence have the new relation, is it still fluent, and does the new term fit into it?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, scored, settle, undecided
from hfcf.core.decisions import exceeds, reaches
from hfcf.core.model import Model
from hfcf.core.settings import Loss, NonNegative, Positive, Share
from hfcf.core.stage import Reject, Stage
from hfcf.engines.classifier import choose
from hfcf.engines.parser import Parser
from hfcf.engines.perplexity import Perplexity
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.systems.ccg.indicator import (
    CLASSIFIER,
    COLUMNS,
    UNJUDGED,
    IndicatorModel,
    IndicatorTraining,
    ask_indicators,
    learn_indicators,
)
from hfcf.systems.ccg.predicate import FINITE_TAGS
from hfcf.tasks.ensemble import VerifierModel
from hfcf.tasks.relation import CANDIDATES, TASK, requests
from hfcf.training.model_cache import check_full_tuning

Row = Mapping[str, Any]

_DETERMINERS = ("DT", "PRP$")
_NO_NOUN = (*_DETERMINERS, "IN", "VBD", "VBZ", ".")
"""What can't follow a determiner."""

_TOO_LONG = "longer than the indicator reads"


@dataclass(frozen=True, kw_only=True)
class CheckRelation(Stage):
    """Reject candidates whose relation is not predicted, and those that are far less fluent.

    Input columns: `tokens`, `head`, `tail`, `label`, `candidates`. Output column: `candidates`, with the indicator's probability of
    its own prediction and the loss of fluency among the scores. A row is rejected when no candidate is left. Without models nothing
    is checked.

    It is the consistency filter of MICE, AutoCAD and CoCo, with their base model. CCG's paper has no such filter.

    Args:
        consistency: ask the base model, as MICE, AutoCAD and CoCo do.
        verifier: another R-BERT that filters instead of the base model (in `JudgeCandidates`).
        indicator: the base model, an R-BERT; None trains it on the rows.
        classifier: how indicators are trained.
        folds: of the base model, see `IdentifyCausalTerms`.
        min_steps: of each training.
        judge_folds: how many further indicators judge the candidates. They had no part in them. Each is trained on the rows outside
            one fold. Its folds and its seed differ from the folds and the seed of the indicators that find causal terms. 0: none;
            else at least 2.
        min_probability: the probability with which the indicator must predict the relation.
        language_model: a decoder-only language model that compares the sentence with its source; None: no comparison.
        max_loss: how much the mean negative log-likelihood of a token may rise, times the sentence's words, in nats.
        max_length: tokens of a sentence that the indicator reads.

    >>> row = {"id": "1", "tokens": "eggs in buckets".split(), "label": "in", "status": None, "candidates": []}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None}}
    >>> CheckRelation()(row)["candidates"]
    []
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    engines: ClassVar = (Perplexity, RelationClassifier)

    consistency: bool = False
    verifier: VerifierModel | None = None
    indicator: IndicatorModel | None = None
    classifier: IndicatorTraining = CLASSIFIER
    folds: Positive = 1
    min_steps: NonNegative = 0
    judge_folds: NonNegative = 0
    min_probability: Share = 0.0
    language_model: Model | None = None
    max_loss: Loss = 0.0
    max_length: Positive = 128

    def check(self) -> None:
        check_full_tuning("classifier", self.classifier)
        if self.judge_folds == 1:
            raise ValueError("judge_folds must be 0 or at least 2, got 1")
        if self.language_model is not None and self.max_loss <= 0:
            raise ValueError(
                "max_loss must be above 0 with a language_model, got 0: every less fluent sentence is rejected; try 15"
            )

    @property
    def asks_base_model(self) -> bool:
        """Whether the base model must predict the new relation."""
        return self.consistency and self.verifier is None and not self.judge_folds

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return COLUMNS if self.judge_folds or (self.asks_base_model and self.indicator is None) else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        if self.judge_folds:
            hp = replace(self.classifier, seed=self.seed + 1)
            return learn_indicators(self.name, ds, hp, self.judge_folds, self.min_steps, deal="judges")
        return learn_indicators(self.name, ds, replace(self.classifier, seed=self.seed), self.folds, self.min_steps)

    def verifiers(self) -> tuple[str, list[Model]] | None:
        if self.judge_folds:
            return "indicators that had no part in making it", []
        if not self.asks_base_model:
            return None
        if self.indicator is not None:
            return "the base model, the indicator named above,", [self.indicator]
        return f"the base model that was trained on {'the other folds of ' if self.folds > 1 else ''}these rows", []

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        of_rows: list[list[Candidate]] = [list(row["candidates"]) for row in rows]
        for check in (self._check_relations, self._check_fluency):
            places = [(i, n) for i, group in enumerate(of_rows) for n, new in enumerate(group) if undecided(new)]
            for (i, n), checked in zip(places, check([(rows[i], of_rows[i][n]) for i, n in places]), strict=True):
                of_rows[i][n] = checked
        # A row without candidates stays as it is: the stage that decides has the reason.
        return [settle(group, "") if group else {"candidates": []} for group in of_rows]

    def _check_relations(self, pairs: list[tuple[Row, Candidate]]) -> list[Candidate]:
        if not pairs or not (self.judge_folds or self.asks_base_model):
            return [new for _, new in pairs]
        edited = [TASK.counterfactual_row(row, new) for row, new in pairs]

        def ask(indicator: Model, part: list[Row]) -> list[Mapping[str, float] | str | None]:
            engine = RelationClassifier(model=indicator, max_length=self.max_length)
            return engine.run(requests(part, indicator))

        unjudged: Mapping[str, float] | str | None = UNJUDGED
        indicator = None if self.judge_folds else self.indicator
        answers = ask_indicators(indicator, self.fitted, [row["id"] for row, _ in pairs], edited, ask, unjudged)
        return [self._relation(new, answer) for (_, new), answer in zip(pairs, answers, strict=True)]

    def _relation(self, new: Candidate, answer: Mapping[str, float] | str | None) -> Candidate:
        if not isinstance(answer, Mapping):
            return reject(new, self.name, _TOO_LONG if answer is None else answer)
        if new["label"] not in answer:
            return reject(new, self.name, f"the indicator does not know {new['label']}")
        label = choose(answer, sorted(answer))
        new = {**new, "scores": [*new["scores"], scored(f"indicator: {label}", answer[label])]}
        if label != new["label"]:
            return reject(new, self.name, f"the indicator says {label}")
        if not reaches(answer[label], self.min_probability):
            return reject(new, self.name, f"the indicator's probability of the relation is below {self.min_probability:g}")
        return new

    def _check_fluency(self, pairs: list[tuple[Row, Candidate]]) -> list[Candidate]:
        if not pairs or self.language_model is None:
            return [new for _, new in pairs]
        engine = Perplexity(model=self.language_model)
        answers = iter(engine.run([text for row, new in pairs for text in (" ".join(row["tokens"]), new["text"])]))
        losses = [_loss(next(answers), next(answers), new["text"]) for _, new in pairs]
        return [self._fluency(new, loss) for (_, new), loss in zip(pairs, losses, strict=True)]

    def _fluency(self, new: Candidate, loss: float | None) -> Candidate:
        if loss is None:
            return reject(new, self.name, "longer than the language model reads")
        new = {**new, "scores": [*new["scores"], scored("loss of mean fluency", loss)]}
        if exceeds(loss, self.max_loss):
            return reject(new, self.name, f"less fluent than its source by more than max_loss, {self.max_loss:g}")
        return new


def _loss(before: float | None, after: float | None, text: str) -> float | None:
    """Return how much the mean loss of a token rises, times the words of the sentence: a mean hides a wrong word of a long one."""
    return None if before is None or after is None else (math.log(after) - math.log(before)) * len(text.split())


@dataclass(frozen=True, kw_only=True)
class CheckGrammar(Stage):
    """Reject candidates with another number of finite verbs, or a determiner without a noun.

    Input columns: `tokens`, `head`, `tail`, `label`, `candidates`. Output column: `candidates`. A row is rejected when no candidate
    is left. CCG's paper has no such check; without it, "was contained in" for "into" gives "We poured the coffee was contained in a
    cup".

    Args:
        tagger: a parser with Penn tags; None checks nothing.

    >>> row = {"id": "1", "tokens": "eggs in buckets".split(), "label": "in", "status": None, "candidates": []}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None}}
    >>> CheckGrammar()(row)["candidates"]
    []
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    engines: ClassVar = (Parser,)

    tagger: Parser | None = None

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if self.tagger is None:
            return [{"candidates": row["candidates"]} for row in rows]
        texts = [tokens for row in rows for tokens in (row["tokens"], *_edited(row))]
        tags = iter([parse["tags"] for parse in self.tagger.run(texts)])
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            before = next(tags)
            judged = [self._judge(new, before, next(tags)) if undecided(new) else new for new in row["candidates"]]
            results.append(settle(judged, "") if judged else {"candidates": []})
        return results

    def _judge(self, new: Candidate, before: Sequence[str], after: Sequence[str]) -> Candidate:
        if _finite_verbs(before) != _finite_verbs(after):
            return reject(new, self.name, "the sentence has another number of finite verbs than its source")
        if _bare_determiners(after) > _bare_determiners(before):
            return reject(new, self.name, "a determiner has no noun")
        return new


def _edited(row: Mapping[str, Any]) -> list[list[str]]:
    """List the tokens of a row's undecided candidates."""
    return [list(TASK.apply_edits(row, new["edits"])["tokens"]) for new in row["candidates"] if undecided(new)]


def _finite_verbs(tags: Sequence[str]) -> int:
    return sum(tag in FINITE_TAGS for tag in tags)


def _bare_determiners(tags: Sequence[str]) -> int:
    """Count determiners that no noun can follow."""
    return sum(tag in _DETERMINERS and following in _NO_NOUN for tag, following in pairwise(tags))
