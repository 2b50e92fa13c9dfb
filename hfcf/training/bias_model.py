"""Predict each row from its claim alone: the biased expert of a product of experts.

In Karimi Mahabadi et al. 2020 the biased branch is a head on the verifier's own encoder, over the claim's representation. In their
code for FEVER it has four layers with Tanh between them. It is trained at the same time, by its own cross-entropy with weight 1 and
by the product's; its gradient does not reach the encoder. Here both kinds are separate models, trained before the verifier and then
fixed:

- "encoder": the verifier's base model, trained on the claims alone, which predicts its own training rows, as the head does. It is
  also sure of claims that it learnt by heart. A row may thus count little because its claim was remembered, not because its claim
  is biased. This effect grows with the model and the number of epochs.
- "ngrams": a logistic regression over the claim's words and bigrams, cross-fitted. Words and bigrams nearly identify a claim. So
  the rows of a fold get the probabilities of a model that was trained on the other folds. Rows that share a group or a claim are
  in one fold. Otherwise the model would have seen the claim's counterfactual, nearly the same claim with the opposite label.
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
from hfcf.training.trainer import Hyperparameters, trained_model

FLOOR = -10.0
"""The lowest log-probability, so that no single expert can overrule the other expert."""


def encoder_bias(rows: Dataset, labels: Sequence[str], hp: Hyperparameters, work: Path) -> np.ndarray:
    """Return log-probabilities, rows × labels, of the verifier's base model trained on the claims alone; `work` is removed."""
    train_classifier(rows, hp, work, labels=labels, claim_only=True)
    answers = predict(rows, Classifier(model=trained_model(hp, work), max_length=hp.max_length), claim_only=True)
    shutil.rmtree(work)
    with np.errstate(divide="ignore"):
        return np.log([[answer[label] for label in labels] for answer in answers]).clip(FLOOR)


def ngram_bias(rows: Dataset, labels: Sequence[str], folds: int = 5) -> np.ndarray:
    """Return log-probabilities, rows × labels, of a regression over n-grams that was not trained on the row, its group or its
    claim.

    Raises:
        ValueError: all rows are one group, or the rows outside a fold have one label only.
    """
    from sklearn.model_selection import GroupKFold

    claims, gold = np.array(rows["claim"], dtype=object), np.array(rows["label"], dtype=object)
    groups = related_groups(rows)
    folds = min(folds, len(set(groups)))
    if folds < 2:
        raise ValueError("bias: ngrams: all rows are in one group, so no model can be trained without it; use bias: encoder")
    scores = np.full((len(rows), len(labels)), FLOOR)
    for train, test in GroupKFold(folds).split(claims, groups=groups):
        if len(set(gold[train])) < 2:
            raise ValueError(f"bias: ngrams: all rows outside a fold are {gold[train[0]]}: give more rows, or use bias: encoder")
        model = ngram_model().fit(claims[train], gold[train])
        columns = [labels.index(label) for label in model.classes_]
        scores[np.ix_(test, columns)] = model.predict_log_proba(claims[test]).clip(FLOOR)
    return scores


def ngram_model() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    count = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", binary=True)
    return make_pipeline(count, LogisticRegression(max_iter=1000))


def related_groups(rows: Dataset) -> list[int]:
    """Give rows that share a group or a claim, directly or through other rows, the same number."""
    columns = zip(rows["corpus"], rows["group_id"], rows["claim"], strict=True)
    return connected([("group", corpus, group), ("claim", normalise(claim))] for corpus, group, claim in columns)
