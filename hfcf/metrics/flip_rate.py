"""Whether a classifier that did not help to make the counterfactuals predicts their intended label."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.model import Model, commit, folder_hash
from hfcf.core.settings import Models, Positive, Prompted
from hfcf.core.stage import StageError
from hfcf.core.task import Task, task_of
from hfcf.core.trainer import load_scorer
from hfcf.engines.classifier import choose
from hfcf.metrics.shared.metric import RACE, check_label_names, metric

log = logging.getLogger(__name__)


def flip_rate(predicted: Sequence[str | None], meant: Sequence[str]) -> float | None:
    """Compute the share of counterfactuals with the intended label; None, for a row that could not be read, is left out."""
    flips = [label == other for label, other in zip(predicted, meant, strict=True) if label is not None]
    return sum(flips) / len(flips) if flips else None


def same_weights(model: Model, other: Model) -> bool:
    """Say whether two models have the same weights, in folders of any name or in any number type."""
    return replace(model, dtype=other.dtype) == other or _weights(model) == _weights(other)


def _weights(model: Model) -> tuple[str | None, ...]:
    """Return what names the weights: the contents of folders, and a Hub model's name and commit."""
    places = (model.source(), model.adapter_source())
    return *(folder_hash(place) if place and Path(place).is_dir() else place for place in places), commit(model)


def _columns(task: Task) -> dict[str, Any]:
    return {**task.columns, **({"label": schema.TEXT} if task.labelled else {})}


def _check(task: str, *, verifier: Model, filtered_by: Sequence[Model], max_length: int) -> None:
    """Raise where the verifier filtered the rows."""
    for model in filtered_by:
        if same_weights(verifier, model):
            raise StageError(
                f"flip_rate: {verifier.name} filtered these counterfactuals and would agree with itself: give another verifier"
            )


def _over_lists(predictions: Sequence[str | None], references: Sequence[str]) -> dict[str, Any]:
    return {"flip_rate": flip_rate(predictions, references)}


def ask_verifier(
    rows: Sequence[Mapping[str, Any]], task: Task, verifier: Model, max_length: int = 256
) -> list[dict[str, float] | None]:
    """Ask a verifier for the class probabilities of each row; None if it gives none."""
    verdicts = task.verdicts(rows, verifier, max_length)
    return [None if isinstance(answer, str) else answer for answer in verdicts]


@metric(
    {"flipped": schema.BOOL, "predicted": schema.TEXT, "probability": schema.FLOAT},
    columns=_columns,
    better="more",
    citation=f"{RACE}, Table 4",
    check=_check,
    over_lists=_over_lists,
)
def measure_flip_rate(
    rows: Dataset,
    *,
    verifier: Annotated[Model, Prompted()],
    filtered_by: Annotated[Models, Prompted()] = (),
    max_length: Positive = 256,
) -> list[Any]:
    """Check whether a model that did not filter the counterfactual predicts its label, or answers its question.

    Input columns: the task's texts and `label`, the counterfactual's label. Questions have `answers` instead. A reader's answer
    flips if the task's scorer calls it right (SQuAD's exact match with one of the answers). Output column: `flip_rate`, `{flipped,
    predicted, probability}`: whether the label flips, the predicted label, and a probability (0–1). It is the probability of the
    counterfactual's label, or of all right answers. Evidence is cut at `max_length`, as in all of this library's verdicts. The
    column is null for a relation's sentence that is longer. It is also null if a language model behind an endpoint ("llm:NAME")
    gives no valid answer. The rate leaves such rows out. A row whose label the classifier does not have is not flipped, with a
    warning.

    Source: RACE, Table 4 (Flip.): the accuracy on (c′, E, y′) of a verifier that was fine-tuned on the corpus. The paper also
        filters with a verifier, perhaps the same. Here the verifier that filtered is refused, because it would agree with itself.

    Args:
        rows: of an expanded set.
        verifier: a three-way verifier for claims, an R-BERT for relations, a reader for questions.
        filtered_by: the models that checked these counterfactuals when they were made.
        max_length: the number of tokens that it reads.

    Raises:
        StageError: `verifier` has the weights of a model in `filtered_by`.
    """
    task = task_of(rows.column_names)
    columns = list(_columns(task))
    counterfactuals = list(iterate(rows, columns))
    answers = ask_verifier(counterfactuals, task, verifier, max_length)
    meant: Sequence[Any]
    if not task.labelled:
        scorer = load_scorer(task.scorer)
        meant = scorer.gold(rows.select_columns(columns))
        return [
            _verdict(*pair, lambda gold, texts: scorer.right([gold] * len(texts), texts))
            for pair in zip(answers, meant, strict=True)
        ]
    meant = [row["label"] for row in counterfactuals]
    check_label_names("flip_rate", meant)
    for label, answer in zip(meant, answers, strict=True):
        if answer is not None and label not in answer:
            _warn(verifier.name, str(label))
    return [_verdict(*pair, lambda gold, texts: [gold == text for text in texts]) for pair in zip(answers, meant, strict=True)]


@lru_cache(maxsize=256)
def _warn(verifier: str, label: str) -> None:
    log.warning("flip_rate: %s has no class %s, so no row of that label can flip: set its labels= if it has", verifier, label)


def _verdict(
    answer: Mapping[str, float] | None, meant: Any, right: Callable[[Any, list[str]], list[bool]]
) -> dict[str, Any] | None:
    if answer is None:
        return None
    predicted, texts = choose(answer, list(answer)), list(answer)
    probability = sum(answer[text] for text, is_right in zip(texts, right(meant, texts), strict=True) if is_right)
    return {"flipped": right(meant, [predicted])[0], "predicted": predicted, "probability": round(probability, 5)}
