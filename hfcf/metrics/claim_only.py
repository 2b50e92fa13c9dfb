"""Whether the label can be guessed from the claim alone: what a set betrays by how it was made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import evaluate
from datasets import Dataset

from hfcf import schema
from hfcf.engines.classifier import ROUND, choose
from hfcf.entities import read_fitted, save_fitted
from hfcf.metrics.info import TEXT, info
from hfcf.metrics.rows import ByTask, need_fit
from hfcf.stage import Stage, StageError

CITATION = "Schuster et al. 2019, Towards Debiasing Fact Verification Models, section 2"


def guess(claims: Sequence[str], labels: Sequence[str], groups: Sequence[str], folds: int = 5, seed: int = 13) -> list[str | None]:
    """For each claim, the label that a model guesses which was trained on the claims and labels of other groups.

    It is logistic regression over TF-IDF of words and pairs of words, cross-validated: a group is in one fold, which its name and
    the seed decide, so that rows in another order get the same guesses.

    Args:
        claims: the texts.
        labels: of each.
        groups: of each; a source and its counterfactuals are one.
        folds: in how many parts the groups are cut.
        seed: which group is in which.

    Returns:
        A label each; None where there is nothing to train on outside its fold.

    >>> claims = [f"town {i} is not old" if i % 2 else f"town {i} is old" for i in range(40)]
    >>> guess(claims, ["yes", "no"] * 20, [str(i) for i in range(40)])[:3]
    ['yes', 'no', 'yes']
    """
    order = sorted(range(len(claims)), key=lambda i: (groups[i], claims[i], labels[i]))
    fold = [int(hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()[:12], 16) % folds for group in groups]
    found: list[str | None] = [None] * len(claims)
    for number in range(folds):
        out, rest = [i for i in order if fold[i] == number], [i for i in order if fold[i] != number]
        if out and rest:
            told = _fold([claims[i] for i in rest], [labels[i] for i in rest], [claims[i] for i in out])
            for i, label in zip(out, told, strict=True):
                found[i] = label
    return found


def _fold(claims: Sequence[str], labels: Sequence[str], asked: Sequence[str]) -> list[str]:
    if len(set(labels)) == 1:
        return [labels[0]] * len(asked)
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    # One-letter words are words, and so are marks: a generator's final full stop betrays it.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]", sublinear_tf=True)
    model = LogisticRegression(C=10.0, max_iter=2000).fit(vectorizer.fit_transform(claims), labels)
    names = [str(name) for name in model.classes_]
    rows = model.predict_proba(vectorizer.transform(asked)).tolist()
    return [choose({name: round(p, ROUND) for name, p in zip(names, row, strict=True)}, names) for row in rows]


def predictability(guesses: Sequence[str | None], labels: Sequence[str]) -> dict[str, Any]:
    """How well the guesses do beside always saying the commonest label.

    Returns:
        `accuracy` and `majority` (0–1), over the rows that have a guess, and `above_majority`, the first less the second: near 0
        (or below it) where claims betray nothing, up to 0.5 for two even labels that they give away. None without guesses.

    >>> predictability(["a", "b", "a", None], ["a", "b", "b", "b"])
    {'accuracy': 0.66667, 'majority': 0.66667, 'above_majority': 0.0}
    """
    pairs = [(one, label) for one, label in zip(guesses, labels, strict=True) if one is not None]
    if not pairs:
        return {"accuracy": None, "majority": None, "above_majority": None}
    accuracy = sum(one == label for one, label in pairs) / len(pairs)
    majority = max(Counter(label for _, label in pairs).values()) / len(pairs)
    return {
        "accuracy": round(accuracy, 5), "majority": round(majority, 5), "above_majority": round(accuracy - majority, 5),
    }  # fmt: skip


def overall(ds: Dataset) -> dict[str, Any]:
    """As `predictability`, of a set that the stage has measured."""
    return predictability([one and one["predicted"] for one in ds["claim_only"]], ds["label"])


@dataclass(frozen=True, kw_only=True)
class MeasureClaimOnly(Stage):
    """Whether a model that sees no evidence guesses each counterfactual's label.

    Input columns: `claim`, `label`. Output column: `claim_only`, `{guessed, predicted}`; null where there was nothing to train on.
    One row's guess says little: what counts is `accuracy` above `majority` over the set, from `overall`.

    Source: Schuster et al. 2019, who trained BERT on FEVER's claims. Deviation: a linear model over words, which needs no download
    and runs in seconds; a stronger one may find more.

    Args:
        task: of the rows; those of relations are refused.
        folds: of the cross-validation, by group.
        fitted: the sha256 that `fit` sets.

    >>> MeasureClaimOnly(task="relation").inputs
    Traceback (most recent call last):
    hfcf.stage.StageError: measure_claim_only says nothing of relation rows: their sentence is all there is to see
    """

    inputs: ClassVar[Any] = ByTask(
        {"verification": {"claim": schema.TEXT, "label": schema.TEXT}}, "their sentence is all there is to see"
    )
    outputs: ClassVar = {"claim_only": {"guessed": schema.BOOL, "predicted": schema.TEXT}}

    task: str = "verification"
    folds: int = 5
    fitted: str | None = None

    def check_fitted(self) -> None:
        need_fit(self, self.fitted, "trains on the other rows of the set")

    def fit(self, ds: Dataset) -> Self:
        """Cross-validate on `ds`, by `group_id`; returns the fitted stage, which holds the guess of each id."""
        guesses = guess(list(ds["claim"]), list(ds["label"]), list(ds["group_id"]), self.folds, self.seed)
        return replace(self, fitted=save_fitted(dict(zip(ds["id"], guesses, strict=True))))

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        guesses = read_fitted(self.fitted or "", "stage = stage.fit(ds)")
        return [{"claim_only": self._verdict(row, guesses)} for row in rows]

    def _verdict(self, row: dict[str, Any], guesses: dict[str, Any]) -> dict[str, Any] | None:
        if row["id"] not in guesses:
            raise StageError(f"{self.name} was fitted to rows without {row['id']!r}: fit it to the set that it measures")
        predicted = guesses[row["id"]]
        return None if predicted is None else {"guessed": predicted == row["label"], "predicted": predicted}


class ClaimOnly(evaluate.Metric):  # type: ignore[misc]
    """How well the labels (`references`) of claims (`predictions`) are guessed from the claims alone, cross-validated.

    `groups`, if given, keeps rows of one group in one fold; `folds` and `seed` are those of `guess`. Gives `accuracy`, `majority`
    and `above_majority`, as `predictability` does.
    """

    def _info(self) -> evaluate.MetricInfo:
        return info(self, CITATION, predictions=TEXT, references=TEXT)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], groups: Sequence[str] | None = None, **settings: Any
    ) -> dict[str, Any]:
        groups = [str(i) for i in range(len(predictions))] if groups is None else groups
        return predictability(guess(predictions, references, groups, **settings), references)
