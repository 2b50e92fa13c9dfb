"""What metrics of whole sets share: the rows that they are fitted to, and what they learned of each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from numbers import Integral
from typing import Any

from datasets import Dataset

from hfcf.core.artifacts import read_artifact
from hfcf.core.columns import has_repeats, iterate
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import problem


def need_fit(stage: Stage, fitted: str | None, why: str) -> None:
    """Raise `StageError` if a metric of whole sets was not fitted to one."""
    if fitted is None:
        raise StageError(f"{stage.name} {why}: stage = stage.fit(ds) first")


def need_names(stage: Stage, labels: Iterable[Any]) -> None:
    """Raise `StageError` if labels are numbers, as the classes of a published set are."""
    if any(isinstance(label, Integral) for label in labels):
        raise StageError(
            f"{stage.name}: the column 'label' holds numbers; hfcf.measure(ds) reads a published set's classes, and "
            "hfcf.metrics.shared.summary.with_label_names(ds) gives them their names"
        )


def to_fit(stage: Stage, ds: Dataset, *more: str) -> Dataset:
    """Select the rows of a set that a metric is fitted to: those that it will not reject."""
    for column in (*more, *stage.inputs):
        if column not in ds.features:
            raise StageError(f"{stage.name}: fit reads the column {column!r}, which is not there; hfcf.expand(ds) makes such rows")
    if "label" in stage.inputs:
        need_names(stage, (row["label"] for row in iterate(ds, ["label"])))
    if "id" in more and has_repeats(ds, "id"):
        twice = [row_id for row_id, n in Counter(ds["id"]).items() if n > 1]
        raise StageError(
            f"{stage.name}: {len(twice)} ids are there more than once, the first: {twice[0]!r}. It tells rows apart by their ids: "
            "leave out rows that are there twice, and put a set's name before its ids where you join several sets"
        )
    sound = array("q", (i for i, row in enumerate(iterate(ds, list(stage.inputs))) if problem(row) is None))
    return ds if len(sound) == len(ds) else ds.select(sound)


@lru_cache(maxsize=4)
def learned(sha: str | None) -> dict[str, Any]:
    """Read what a metric's `fit` wrote; memoised, since a hash always names the same content."""
    return read_artifact(sha or "", "stage = stage.fit(ds)")


def learned_of(stage: Stage, fitted: str | None, row_id: str) -> Any:
    """Return what a metric's `fit` wrote of a row."""
    content = learned(fitted)
    if row_id not in content:
        raise StageError(f"{stage.name} was fitted to rows without {row_id!r}: fit it to the set that it measures")
    return content[row_id]
