"""Whether the label can be guessed from the claim alone, which shows artefacts of how a set was made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from datasets import Dataset
from pydantic import Field

from hfcf.core import schema
from hfcf.core.settings import Seed
from hfcf.core.splits import connected
from hfcf.engines.classifier import ROUND, choose
from hfcf.metrics.shared.metric import check_label_names, metric
from hfcf.metrics.shared.texts import columns_of
from hfcf.text.normalise import normalise


def guess(claims: Sequence[str], labels: Sequence[str], groups: Sequence[str], folds: int = 5, seed: int = 13) -> list[str | None]:
    """Guess the label of each claim by a model that was trained on the claims and labels of other groups.

    It is logistic regression over TF-IDF of words and pairs of words, cross-validated. Groups that share a claim are in one fold.
    The first of their names and the seed choose the fold, so the order of rows does not change the guesses.

    Args:
        claims: the texts.
        labels: the label of each claim.
        groups: the group of each claim; a source and its counterfactuals are one group.
        folds: the number of parts into which the groups are divided, at least 2.
        seed: chooses the fold of each group.

    Returns:
        A label for each claim; None if there is nothing to train on outside its fold.
    """
    order = sorted(range(len(claims)), key=lambda i: (groups[i], claims[i], labels[i]))
    fold = folds_of(claims, groups, folds, seed)
    guesses: list[str | None] = [None] * len(claims)
    for number in range(folds):
        out, rest = [i for i in order if fold[i] == number], [i for i in order if fold[i] != number]
        if out and rest:
            answers = _fold([claims[i] for i in rest], [labels[i] for i in rest], [claims[i] for i in out])
            for i, label in zip(out, answers, strict=True):
                guesses[i] = label
    return guesses


def folds_of(claims: Sequence[str], groups: Sequence[str], folds: int = 5, seed: int = 13) -> list[int]:
    """Return the fold of each row; rows that share a group or a claim are in one fold."""
    # If a claim of two groups were in two folds, it would be trained on with the label that is to be guessed.
    first = connected([("group", group), ("claim", normalise(claim))] for group, claim in zip(groups, claims, strict=True))
    names: dict[int, str] = {}
    for i, group in zip(first, groups, strict=True):
        names[i] = min(group, names.get(i, group))
    return [int(hashlib.sha256(f"{seed}:{names[i]}".encode()).hexdigest()[:12], 16) % folds for i in first]


def _fold(claims: Sequence[str], labels: Sequence[str], others: Sequence[str]) -> list[str]:
    if len(set(labels)) == 1:
        return [labels[0]] * len(others)
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    # One-letter words are words, and so are punctuation marks: a generator's final full stop reveals it.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]", sublinear_tf=True)
    model = LogisticRegression(C=10.0, max_iter=2000).fit(vectorizer.fit_transform(claims), labels)
    names = [str(name) for name in model.classes_]
    rows = model.predict_proba(vectorizer.transform(others)).tolist()
    return [choose({name: round(p, ROUND) for name, p in zip(names, row, strict=True)}, names) for row in rows]


def predictability(guesses: Sequence[str | None], labels: Sequence[str]) -> dict[str, Any]:
    """Compare the guesses with always guessing the commonest label.

    Returns:
        Over the rows with a guess: `accuracy` and `majority` (0–1), and `above_majority`, accuracy minus majority. This is small
        where nearly all rows have the same label. In that case read `balanced`: the share of rows guessed right, as the mean over
        labels. `above_chance` is `balanced` minus 1/k for k labels: near 0 if the model finds nothing in claims, at most 1 − 1/k.
        All are None without guesses; `balanced` and `above_chance` are also None with a single label.
    """
    pairs = [(guessed, label) for guessed, label in zip(guesses, labels, strict=True) if guessed is not None]
    if not pairs:
        return dict.fromkeys(("accuracy", "majority", "above_majority", "balanced", "above_chance"))
    accuracy = sum(guessed == label for guessed, label in pairs) / len(pairs)
    counts, right = Counter(label for _, label in pairs), Counter(label for guessed, label in pairs if guessed == label)
    majority = max(counts.values()) / len(pairs)
    balanced = sum(right[label] / n for label, n in counts.items()) / len(counts) if len(counts) > 1 else None
    return {
        "accuracy": round(accuracy, 5), "majority": round(majority, 5), "above_majority": round(accuracy - majority, 5),
        "balanced": balanced and round(balanced, 5),
        "above_chance": None if balanced is None else round(balanced - 1 / len(counts), 5),
    }  # fmt: skip


def _learn(rows: Dataset, *, folds: int, seed: int) -> dict[str, str | None]:
    """Cross-validate by `group_id`; return the guess of each `id`."""
    check_label_names("claim_only", rows["label"])
    guesses = guess(list(rows["claim"]), list(rows["label"]), list(map(str, rows["group_id"])), folds, seed)
    return dict(zip(rows["id"], guesses, strict=True))


def _over_lists(
    predictions: Sequence[str], references: Sequence[str], groups: Sequence[str] | None = None, folds: int = 5, seed: int = 13
) -> dict[str, Any]:
    """Return `predictability` of claims and labels; rows of one group are in one fold."""
    groups = [str(i) for i in range(len(predictions))] if groups is None else groups
    return predictability(guess(predictions, references, groups, folds, seed), references)


def _overall(ds: Dataset) -> dict[str, Any]:
    """Compute `predictability` of a measured set."""
    return predictability([answer and answer["predicted"] for answer in ds["claim_only"]], ds["label"])


@metric(
    {"guessed": schema.BOOL, "predicted": schema.TEXT},
    columns=columns_of("claim", "label", why="it hides the evidence of a claim"),
    better="less `guessed`; `above_majority` and `above_chance` near 0",
    citation="Schuster et al. 2019, Towards Debiasing Fact Verification Models, section 2",
    learn=_learn,
    learns_from=("id", "group_id"),
    overall=_overall,
    over_lists=_over_lists,
    of_candidates=False,
)
def measure_claim_only(
    rows: Dataset, *, folds: Annotated[int, Field(ge=2)] = 5, seed: Seed = 13, learned: dict[str, str | None] | None = None
) -> list[Any]:
    """Check whether a linear model guesses the label from the claim alone, cross-validated by group.

    Input columns: `claim`, `label`. Output column: `claim_only`, `{guessed, predicted}`; null where there was nothing to train on.
    The guess of a single row means little: read `above_majority` and `above_chance` of the set, which `predictability` computes.
    As an `evaluate.Metric`: `predictions` are claims, `references` are their labels, and `groups`, if given, are their groups. It
    returns what `predictability` returns.

    Source: Schuster et al. 2019, who trained BERT on FEVER's claims. Deviation: a linear model over words, which needs no download
        and runs in seconds; a stronger model may find more.

    Args:
        rows: of an expanded set; rows of relations are refused.
        folds: the number of folds of the cross-validation, by group and claim; at least 2.
        seed: the seed of the folds.
        learned: the guess of each id; by default these rows are the whole set.
    """
    guesses = _learn(rows, folds=folds, seed=seed) if learned is None else learned
    answers = zip((guesses[row_id] for row_id in rows["id"]), rows["label"], strict=True)
    return [None if guess is None else {"guessed": guess == label, "predicted": guess} for guess, label in answers]
