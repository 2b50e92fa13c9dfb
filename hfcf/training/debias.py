"""Train a verifier to read the evidence, although the claims of its training rows reveal their labels.

- `reweight`: weights the rows so that no n-gram of the claims predicts the label (Schuster et al. 2019; `hfcf.training.reweight`).
- `poe`: a product of experts, the verifier and a model that reads claims alone (Karimi Mahabadi et al. 2020).

CrossAug (Lee et al. 2021, section 3.2) compares its counterfactuals with both kinds. The stored verifier is used like any
other verifier.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from datasets import Dataset
from pydantic import Field
from torch.nn.functional import cross_entropy

from hfcf.core import recipe as recipes
from hfcf.core.settings import NonNegative, Positive, check_fields
from hfcf.core.splits import connected
from hfcf.engines.classifier import Classifier
from hfcf.text.normalise import normalise
from hfcf.training.classifier import predict, train_classifier
from hfcf.training.reweight import row_weights
from hfcf.training.trainer import Hyperparameters, Loss, trained_model

SETTINGS = {
    "reweight": ("sizes", "common", "at_least", "top", "penalty"),
    "poe": ("bias", "folds"),
}
"""What can be set, for each kind."""
FLOOR = -10.0
"""The lowest log-probability, so that no single expert can overrule the other expert."""


@dataclass(frozen=True, kw_only=True)
class Debias:
    """Keep a verifier from learning the bias of its training claims.

    Args:
        kind: "reweight" or "poe".
        sizes: reweight: numbers of words in an n-gram.
        common: reweight: how many of the commonest words are left out before n-grams are formed.
        at_least: reweight: in how many rows an n-gram must occur.
        top: reweight: how many of the most biased n-grams of each label to balance; 0 balances all, as in the paper.
        penalty: reweight: λ, the penalty on large weights.
        bias: poe: the model that reads claims alone: "encoder", the same base model trained beforehand, or "ngrams", a regression
            that takes seconds.
        folds: poe: number of folds for the cross-fitting of "ngrams".

    Raises:
        ValueError: a value has another type or is out of range; the message names the field.
    """

    kind: Literal["reweight", "poe"]
    sizes: Annotated[tuple[Annotated[int, Field(ge=1, strict=True)], ...], Field(min_length=1)] = (2,)
    common: NonNegative = 10
    at_least: Positive = 5
    top: NonNegative = 0
    penalty: Annotated[float, Field(ge=0)] = 0.01
    bias: Literal["encoder", "ngrams"] = "encoder"
    folds: Annotated[int, Field(ge=2)] = 5

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "sizes", tuple(self.sizes))

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str = "debias") -> Debias:
        """Read a recipe's mapping: `kind`, and only settings of that kind."""
        if not isinstance(content, Mapping):
            raise recipes.RecipeError(
                f"{where} must be a mapping such as {{kind: poe}}, with one of {', '.join(SETTINGS)}, got {content!r}"
            )
        kind = content.get("kind")
        recipes.check_keys(content, ("kind", *SETTINGS.get(str(kind), cls.__dataclass_fields__)), where)
        try:
            return cls(**{"kind": kind, **content})
        except ValueError as error:
            raise recipes.RecipeError(f"{where}: {error}") from error

    def settings(self) -> dict[str, Any]:
        """Return what the results depend on: the kind and the settings of that kind."""
        return {name: getattr(self, name) for name in ("kind", *SETTINGS[self.kind])}


def prepare(
    debias: Debias, rows: Dataset, labels: Sequence[str], hp: Hyperparameters, work: Path
) -> tuple[Loss, dict[str, list[Any]]]:
    """Return the loss of a training, and the columns that only this loss reads; `work` is a folder for a biased model and is
    removed."""
    if debias.kind == "reweight":
        settings = {name: getattr(debias, name) for name in SETTINGS["reweight"]}
        alpha = row_weights(list(rows["claim"]), list(rows["label"]), **settings)
        return Loss(_reweighted, ("row_weight",)), {"row_weight": (1 + alpha).tolist()}
    encoder = debias.bias == "encoder"
    bias = encoder_bias(rows, labels, hp, work) if encoder else ngram_bias(rows, labels, debias.folds)
    return Loss(_product, ("bias_log_probabilities",)), {"bias_log_probabilities": bias.tolist()}


def weighted_cross_entropy(logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Average the cross-entropy with a weight for each row."""
    return (weights * cross_entropy(logits.float(), labels, reduction="none")).sum() / weights.sum()


def product_of_experts(logits: torch.Tensor, labels: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy of the product of two experts; the biased expert (log-probabilities) gets no gradient."""
    return cross_entropy(logits.float().log_softmax(-1) + bias.detach(), labels)


def _reweighted(outputs: Any, batch: Mapping[str, Any]) -> torch.Tensor:
    return weighted_cross_entropy(outputs.logits, batch["labels"], batch["row_weight"])


def _product(outputs: Any, batch: Mapping[str, Any]) -> torch.Tensor:
    return product_of_experts(outputs.logits, batch["labels"], batch["bias_log_probabilities"])


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
