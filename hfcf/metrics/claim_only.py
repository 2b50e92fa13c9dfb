"""Whether the label can be guessed from the claim alone: what a set betrays by how it was made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import evaluate
from datasets import Dataset

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.splits import connected
from hfcf.core.stage import Stage
from hfcf.engines.classifier import ROUND, choose
from hfcf.metrics.shared.fit import learned_of, need_fit, to_fit
from hfcf.metrics.shared.info import TEXT, info
from hfcf.metrics.shared.rows import ColumnsOf
from hfcf.tasks import DEFAULT
from hfcf.text.normalise import normalise

CITATION = "Schuster et al. 2019, Towards Debiasing Fact Verification Models, section 2"


def guess(claims: Sequence[str], labels: Sequence[str], groups: Sequence[str], folds: int = 5, seed: int = 13) -> list[str | None]:
    """Guess the label of each claim by a model that was trained on the claims and labels of other groups.

    It is logistic regression over TF-IDF of words and pairs of words, cross-validated: groups that share a claim are in one fold,
    which the first of their names and the seed decide, so that rows in another order get the same guesses.
    """
    order = sorted(range(len(claims)), key=lambda i: (groups[i], claims[i], labels[i]))
    if folds < 2:
        raise ValueError(f"folds={folds}: 2 or more, or there is nothing to train on")
    # A claim that stands in two groups would be trained on with the very label that is asked.
    first = connected([("group", group), ("claim", normalise(claim))] for group, claim in zip(groups, claims, strict=True))
    names: dict[int, str] = {}
    for i, group in zip(first, groups, strict=True):
        names[i] = min(group, names.get(i, group))
    fold = [int(hashlib.sha256(f"{seed}:{names[i]}".encode()).hexdigest()[:12], 16) % folds for i in first]
    guesses: list[str | None] = [None] * len(claims)
    for number in range(folds):
        out, rest = [i for i in order if fold[i] == number], [i for i in order if fold[i] != number]
        if out and rest:
            answers = _fold([claims[i] for i in rest], [labels[i] for i in rest], [claims[i] for i in out])
            for i, label in zip(out, answers, strict=True):
                guesses[i] = label
    return guesses


def _fold(claims: Sequence[str], labels: Sequence[str], others: Sequence[str]) -> list[str]:
    if len(set(labels)) == 1:
        return [labels[0]] * len(others)
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    # One-letter words are words, and so are marks: a generator's final full stop betrays it.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]", sublinear_tf=True)
    model = LogisticRegression(C=10.0, max_iter=2000).fit(vectorizer.fit_transform(claims), labels)
    names = [str(name) for name in model.classes_]
    rows = model.predict_proba(vectorizer.transform(others)).tolist()
    return [choose({name: round(p, ROUND) for name, p in zip(names, row, strict=True)}, names) for row in rows]


def predictability(guesses: Sequence[str | None], labels: Sequence[str]) -> dict[str, Any]:
    """Compare the guesses with always saying the commonest label."""
    pairs = [(one, label) for one, label in zip(guesses, labels, strict=True) if one is not None]
    if not pairs:
        return dict.fromkeys(("accuracy", "majority", "above_majority", "balanced", "above_chance"))
    accuracy = sum(one == label for one, label in pairs) / len(pairs)
    counts, right = Counter(label for _, label in pairs), Counter(label for one, label in pairs if one == label)
    majority = max(counts.values()) / len(pairs)
    balanced = sum(right[label] / n for label, n in counts.items()) / len(counts) if len(counts) > 1 else None
    return {
        "accuracy": round(accuracy, 5), "majority": round(majority, 5), "above_majority": round(accuracy - majority, 5),
        "balanced": balanced and round(balanced, 5),
        "above_chance": None if balanced is None else round(balanced - 1 / len(counts), 5),
    }  # fmt: skip


def overall(ds: Dataset) -> dict[str, Any]:
    """Compute `predictability` of a set that the stage has measured."""
    return predictability([one and one["predicted"] for one in ds["claim_only"]], ds["label"])


@dataclass(frozen=True, kw_only=True)
class MeasureClaimOnly(Stage):
    """Check whether a linear model guesses the label from the claim alone, cross-validated by group.

    Input columns: `claim`, `label`. Output column: `claim_only`, `{guessed, predicted}`; null where there was nothing to train on.
    One row's guess says little: read `above_majority` and `above_chance` of the set, which `overall` computes.

    Source: Schuster et al. 2019, who trained BERT on FEVER's claims. Deviation: a linear model over words, which needs no download
    and runs in seconds; a stronger one may find more.

    Args:
        task: of the rows; those of relations are refused.
        folds: of the cross-validation, by group and claim; 2 or more.
        fitted: the sha256 that `fit` sets.

    >>> MeasureClaimOnly(task="relation").inputs
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_claim_only reads 'claim' and can't measure relation rows: it hides the evidence of a claim
    """

    better: ClassVar = "less `guessed`; `above_majority` and `above_chance` near 0"
    of_candidates: ClassVar = False
    inputs: ClassVar[Any] = ColumnsOf("claim", "label", why="it hides the evidence of a claim")
    outputs: ClassVar = {"claim_only": {"guessed": schema.BOOL, "predicted": schema.TEXT}}

    task: str = DEFAULT
    folds: int = 5
    fitted: str | None = None

    def __post_init__(self) -> None:
        guess([], [], [], self.folds)  # which raises for folds that are none

    def check_fitted(self) -> None:
        need_fit(self, self.fitted, "trains on the other rows of the set")

    def fit(self, ds: Dataset) -> Self:
        """Cross-validate on `ds`, by `group_id`; returns the fitted stage, which holds the guess of each `id`."""
        rows = to_fit(self, ds, "id", "group_id")
        guesses = guess(list(rows["claim"]), list(rows["label"]), [str(one) for one in rows["group_id"]], self.folds, self.seed)
        return replace(self, fitted=save_artifact(dict(zip(rows["id"], guesses, strict=True))))

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        predicted = learned_of(self, self.fitted, row["id"])
        return {"claim_only": None if predicted is None else {"guessed": predicted == row["label"], "predicted": predicted}}


class ClaimOnly(evaluate.Metric):  # type: ignore[misc]
    """How well the labels (`references`) of claims (`predictions`) are guessed from the claims alone, cross-validated.

    `groups`, if given, keeps rows of one group in one fold; `folds` (2 or more) and `seed` are those of `guess`. Gives what
    `predictability` does.
    """

    _info = info(CITATION, predictions=TEXT, references=TEXT)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], groups: Sequence[str] | None = None, **settings: Any
    ) -> dict[str, Any]:
        groups = [str(i) for i in range(len(predictions))] if groups is None else groups
        return predictability(guess(predictions, references, groups, **settings), references)
