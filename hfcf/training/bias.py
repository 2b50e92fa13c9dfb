"""What a model that reads claims alone makes of each row: the biased expert of a product of experts.

In Karimi Mahabadi et al. 2020 the biased branch is a head over the claim's representation by the verifier's own encoder (in their
code for FEVER: of four layers with Tanh between them), trained at the same time by its own cross-entropy, of weight 1, and by the
product's; nothing of it reaches the encoder. Both kinds here are models of their own, trained before the verifier, then fixed:

- "encoder": the verifier's base model, trained on the claims alone in the same way, and its probabilities of the very rows that it
  was trained on, as the head's are. What it learnt by heart it is sure of too: a row may count little because its claim was
  remembered, not because its claim is biased; the more so, the larger the model and the more epochs.
- "ngrams": a logistic regression over the claim's words and bigrams, cross-fitted: rows are split into folds, and those of a fold
  get the probabilities of a model of the other folds. Words and bigrams nearly identify a claim: without this, the bias would get
  almost every row right, and little would be left for the verifier to learn. Rows that share a group or a claim are in one fold:
  else a claim would be judged by a model that saw its counterfactual, nearly the same claim with the other label, and the bias
  would be wrong because of the pair, not of its words.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from hfcf.core.splits import connected
from hfcf.engines.classifier import Classifier
from hfcf.text.normalise import normalise
from hfcf.training.classifier import predict, train_classifier
from hfcf.training.loop import Hyperparameters, trained_model

FLOOR = -10.0
"""Of a log-probability: no expert is so sure that the other can't be heard."""


def encoder_bias(rows: Dataset, labels: Sequence[str], hp: Hyperparameters, work: Path) -> np.ndarray:
    """Log-probabilities, rows × labels, of the base model trained on the claims of these rows.

    Args:
        rows: verification rows.
        labels: the classes, in order.
        hp: as the verifier's.
        work: a folder for the model, which is removed afterwards.
    """
    train_classifier(rows, hp, work, labels=labels, claim_only=True)
    answers = predict(rows, Classifier(model=trained_model(hp, work), max_length=hp.max_length), claim_only=True)
    shutil.rmtree(work)
    with np.errstate(divide="ignore"):
        return np.log([[answer[label] for label in labels] for answer in answers]).clip(FLOOR)


def ngram_bias(rows: Dataset, labels: Sequence[str], folds: int = 5) -> np.ndarray:
    """Log-probabilities, rows × labels, of a regression over n-grams that saw neither the row nor its group nor its claim.

    Args:
        rows: `claim`, `label`, `group_id` and `corpus` are read.
        labels: the classes, in order.
        folds: how many; fewer if there are fewer groups.

    Raises:
        ValueError: all rows are one group, or the rows outside a fold have one label only.

    >>> claims = [f"{i} did {'not ' * (i % 2)}sing" for i in range(20)]
    >>> rows = Dataset.from_dict({"claim": claims, "label": ["A", "B"] * 10, "group_id": claims, "corpus": ["c"] * 20})
    >>> ngram_bias(rows, ["A", "B"]).argmax(1).tolist() == [0, 1] * 10
    True
    """
    from sklearn.model_selection import GroupKFold

    claims, gold = np.array(rows["claim"], dtype=object), np.array(rows["label"], dtype=object)
    groups = related_groups(rows)
    folds = min(folds, len(set(groups)))
    if folds < 2:
        raise ValueError("bias: ngrams: these rows are one group, so that no model could be trained without it; use bias: encoder")
    found = np.full((len(rows), len(labels)), FLOOR)
    for seen, hidden in GroupKFold(folds).split(claims, groups=groups):
        if len(set(gold[seen])) < 2:
            raise ValueError(f"bias: ngrams: all rows outside a fold are {gold[seen[0]]}: give more rows, or use bias: encoder")
        model = ngram_model().fit(claims[seen], gold[seen])
        columns = [labels.index(label) for label in model.classes_]
        found[np.ix_(hidden, columns)] = model.predict_log_proba(claims[hidden]).clip(FLOOR)
    return found


def ngram_model() -> Any:
    """A logistic regression over the words and bigrams that a claim holds, not trained yet."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    count = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", binary=True)
    return make_pipeline(count, LogisticRegression(max_iter=1000))


def related_groups(rows: Dataset) -> list[int]:
    """A number for each row: equal for rows that share a group or a claim, directly or through others."""
    columns = zip(rows["corpus"], rows["group_id"], rows["claim"], strict=True)
    return connected([("group", corpus, group), ("claim", normalise(claim))] for corpus, group, claim in columns)
