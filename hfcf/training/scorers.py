"""Scorers rate the answers of trained models, one a kind of task; see `hfcf.core.trainer.Scorer`."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from hfcf.metrics.scores import em_f1, relation
from hfcf.tasks.relation import OTHER

Array = NDArray[np.float64]
NONE = "-"
"""The letter of no relation, and of a sentence that is too long for the classifier."""
_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class LabelScorer:
    """Rate labels by accuracy and macro-F1, the mean over the labels that rows have, as `hfcf.training.verifier.scores` has it.

    >>> VERDICTS.scores(["SUPPORTS", "REFUTES"], ["SUPPORTS", "SUPPORTS"])
    {'accuracy': 0.5, 'macro_f1': 0.3333}
    """

    metrics: ClassVar[Mapping[str, str]] = {"accuracy": "Accuracy", "macro_f1": "Macro-F1"}
    compared: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1")
    note: ClassVar[str] = ""

    def gold(self, rows: Dataset) -> list[str]:
        return list(rows["label"])

    def letters(self, labels: Iterable[str]) -> dict[str, str]:
        names = sorted(set(labels))
        initials = {name: name[:1] for name in names}
        return initials if len(set(initials.values())) == len(names) else _assign_letters(names)

    def scores(self, gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        from hfcf.training.verifier import scores

        return scores(gold, predicted)

    def right(self, gold: Sequence[str], predicted: Sequence[str]) -> list[bool]:
        return [true == answer for true, answer in zip(gold, predicted, strict=True)]

    def resample(self, counts: Array, gold: NDArray[Any], predicted: NDArray[Any]) -> Array:
        accuracy = counts @ (predicted == gold).T.astype(float) / counts.sum(axis=1, keepdims=True)
        f1 = []
        for letter in sorted(set(gold.tolist())):  # a letter that a sample does not draw counts 0
            in_gold, chosen = (gold == letter).astype(float), (predicted == letter).astype(float)
            f1.append(2 * (counts @ (chosen * in_gold).T) / np.maximum((counts @ in_gold)[:, None] + counts @ chosen.T, 1))
        return np.stack([accuracy, np.mean(f1, axis=0)])


@dataclass(frozen=True)
class RelationScorer(LabelScorer):
    """Rate relations by micro-F1, SemEval's official macro-F1 and accuracy.

    >>> RELATIONS.letters(["PHYS", "Other", "ART"])
    {'Other': '-', 'ART': 'a', 'PHYS': 'b'}
    """

    metrics: ClassVar[Mapping[str, str]] = {
        "micro_f1": "Micro-F1", "macro_f1": "Macro-F1, SemEval's official score", "accuracy": "Accuracy"
    }  # fmt: skip
    compared: ClassVar[tuple[str, ...]] = ("micro_f1",)
    note: ClassVar[str] = "Micro-F1 is over the relations with their directions, without Other."

    def letters(self, labels: Iterable[str]) -> dict[str, str]:
        return {OTHER: NONE, **_assign_letters(sorted(set(labels) - {OTHER}))}

    def scores(self, gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        return relation.scores(gold, predicted)

    def resample(self, counts: Array, gold: NDArray[Any], predicted: NDArray[Any]) -> Array:
        related, positive = (gold != NONE).astype(float), (predicted != NONE).astype(float)
        right = (predicted == gold) * related
        return np.stack([2 * (counts @ right.T) / np.maximum((counts @ related)[:, None] + counts @ positive.T, 1)])


@dataclass(frozen=True)
class AnswerScorer:
    """Rate answers in words by exact match and F1; see `hfcf.metrics.scores.em_f1`.

    The gold answer of a row is the list of its alternatives and of the texts of a column `aliases`, or empty. Rows with a true
    column `regex` (Curated TREC) have patterns instead. A predicted answer is a text, "" where the model gives none.

    >>> ANSWERS.scores([["Ada"]], ["Ada King"])
    {'em': 0.0, 'f1': 0.6667}
    """

    metrics: ClassVar[Mapping[str, str]] = {"em": "Exact match", "f1": "F1"}
    compared: ClassVar[tuple[str, ...]] = ("em", "f1")
    note: ClassVar[str] = "Exact match and F1 are SQuAD's, the best over a row's alternative answers."

    def gold(self, rows: Dataset) -> list[em_f1.Gold]:
        patterns = rows["regex"] if "regex" in rows.column_names else [False] * len(rows)
        aliases = rows["aliases"] if "aliases" in rows.column_names else [None] * len(rows)
        both = zip(rows["answers"], aliases, strict=True)
        alternatives = [list(dict.fromkeys([*((answer or {}).get("text") or []), *(more or [])])) for answer, more in both]
        return [{"regex": texts} if regex else texts for texts, regex in zip(alternatives, patterns, strict=True)]

    def letters(self, labels: Iterable[str]) -> None:
        return None

    def scores(self, gold: Sequence[em_f1.Gold], predicted: Sequence[str]) -> dict[str, float]:
        return em_f1.scores(gold, predicted)

    def right(self, gold: Sequence[em_f1.Gold], predicted: Sequence[str]) -> list[bool]:
        return [em_f1.exact_match(true, answer) == 1 for true, answer in zip(gold, predicted, strict=True)]

    def resample(self, counts: Array, gold: NDArray[Any], predicted: NDArray[Any]) -> Array:
        of_rows = [
            np.array([[score(true, answer) for true, answer in zip(gold, each, strict=True)] for each in predicted])
            for score in (em_f1.exact_match, em_f1.f1)
        ]
        return np.stack([counts @ each.T / counts.sum(axis=1, keepdims=True) for each in of_rows])


def _assign_letters(labels: Sequence[str]) -> dict[str, str]:
    if len(labels) > len(_LETTERS):
        raise ValueError(f"there are {len(labels)} labels; a comparison has letters for {len(_LETTERS)}")
    return dict(zip(labels, _LETTERS, strict=False))


VERDICTS = LabelScorer()
"""Rows of any labels, closed or open."""
RELATIONS = RelationScorer()
ANSWERS = AnswerScorer()
