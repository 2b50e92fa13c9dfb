"""Ask a model of any task about a paired set, and rate its pairwise consistency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from hfcf.core.columns import with_label_names
from hfcf.core.model import Model
from hfcf.core.pairs import sources
from hfcf.core.task import task_of
from hfcf.core.trainer import Scorer, load_scorer, load_trainer, used_labels
from hfcf.metrics.scores import consistency as scores
from hfcf.metrics.shared.bootstrap import intervals

Array = NDArray[np.float64]


def consistency(
    pairs: Dataset, model: str | Model, *, max_length: int | None = None, labels: Sequence[str] | None = None
) -> dict[str, Any]:
    """Score the pairwise consistency of a model on a paired set, by category and by edit distance.

    Args:
        pairs: from `hfcf.pair` or `hfcf.pair_within`: rows of a task with their originals in `source`. A column `change` has the
            categories, such as "reference" and "predicate".
        model: a model for that task: a Hub id, a folder, or a `Model`.
        max_length: number of tokens in an input; by default as many as the model reads.
        labels: the classes that may be answered; by default the labels of the rows.

    Returns:
        As `hfcf.metrics.scores.consistency.consistency`, with the strata of `strata_of`: `change` and `edit distance`. It also has
        `interval`, the ends of the interval of 95 % of the consistency, 0–1, None without any. Sources are drawn again, each with
        all its counterfactuals, so that several of one source do not count as independent.

    Raises:
        ValueError: the set is not paired, or no model of this library answers rows of its task.

    Source: Paranjape et al. 2022, RGF, section 6.1 and appendix C.4. The task's scorer decides whether an answer is right: it is
    the label, or it matches an alternative exactly.
    """
    pairs, originals = with_label_names(pairs), sources(pairs)
    task = task_of(pairs.features)
    if not task.trainer or not task.scorer:
        raise ValueError(f"no model of this library can answer {task.name} rows")
    trainer, scorer, reference = load_trainer(task.trainer), load_scorer(task.scorer), Model.of(model)
    if labels is None:
        present = {*pairs["label"], *originals["label"]} if task.labelled else set()
        labels = used_labels(task, present)[: trainer.ways] if task.labels else sorted(present)

    def right(rows: Dataset) -> list[bool]:
        return scorer.right(scorer.gold(rows), trainer.predict(rows, reference, max_length=max_length, labels=labels))

    old, new = right(originals), right(pairs)
    ids = originals["id"] if "id" in originals.features else range(len(originals))
    return {**scores.consistency(old, new, scores.strata_of(pairs)), "interval": _interval(old, new, list(ids))}


def _interval(old: Sequence[bool], new: Sequence[bool], names: Sequence[Any]) -> list[float] | None:
    """Return the ends of the interval of a consistency; samples of sources without a right original count 0."""
    if not any(old):
        return None
    old_right, both = np.array(old, dtype=float), np.array([a and b for a, b in zip(old, new, strict=True)], dtype=float)
    ((_, low, high),) = intervals(lambda drawn: (drawn @ both / np.maximum(drawn @ old_right, 1))[:, None], names)
    return [round(low, 4), round(high, 4)]


@dataclass(frozen=True)
class PairScorer:
    """Rate answers to pairs by their consistency; an answer is a list: to the original, and to the counterfactual."""

    metrics: ClassVar[dict[str, str]] = {
        "consistency": "Pairwise consistency", "source_right": "Right on the originals of the pairs",
        "counterfactual_right": "Right on the counterfactuals of the pairs",
    }  # fmt: skip
    compared: ClassVar[tuple[str, ...]] = ("consistency",)
    note: ClassVar[str] = (
        "Pairwise consistency is the accuracy on counterfactuals whose originals the same model answers right (RGF, section 6.1): "
        "each model is scored on pairs of its own."
    )

    of: Scorer

    def gold(self, rows: Dataset) -> list[list[Any]]:
        sides = zip(self.of.gold(sources(rows)), self.of.gold(rows), strict=True)
        return [list(pair) for pair in sides]

    def letters(self, labels: Any) -> None:
        return

    def right(self, gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> list[bool]:
        old, new = self._sides(gold, predicted)
        return [original and counterfactual for original, counterfactual in zip(old, new, strict=True)]

    def scores(self, gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> dict[str, float]:
        """Return all `metrics`; consistency is nan where no original is right."""
        numbers = scores.consistency(*self._sides(gold, predicted))
        values = [numbers[name] for name in ("consistency", "source", "counterfactual")]
        return dict(zip(self.metrics, [float("nan") if value is None else value for value in values], strict=True))

    def resample(self, counts: Array, gold: NDArray[Any], predicted: NDArray[Any]) -> Array:
        """Return the consistency of many samples of pairs; 0 in a sample without a right original."""
        sides = [self._sides(list(gold), list(each)) for each in predicted]
        old, new = (np.array([of_model[i] for of_model in sides], dtype=float) for i in (0, 1))
        return np.stack([counts @ (old * new).T / np.maximum(counts @ old.T, 1)])

    def _sides(self, gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[list[bool], list[bool]]:
        old, new = (self.of.right([pair[i] for pair in gold], [pair[i] for pair in predicted]) for i in (0, 1))
        return old, new
