"""Train CCG's indicator, an R-BERT, on the given rows; or one for each fold, so that none judges a row it was trained on.

MICE, AutoCAD and CoCo have the same model, with the same folds, as their base model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from datasets import Dataset, Features, IterableDataset

from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.core.store import read_artifact, save_artifact
from hfcf.core.system import System
from hfcf.tasks.relation import TASK, learnable, spans
from hfcf.training.loop import Hyperparameters
from hfcf.training.store import ensure_steps, stored_model, train_once

COLUMNS = ("id", "tokens", "head", "tail", "label")
"""What a training reads of a row."""

UNJUDGED = "no indicator was trained for this row: system.fit_models(ds) trains them on the rows of ds"
"""Why there is no answer for a row that no fold has."""

Rows = Sequence[Mapping[str, Any]]
A = TypeVar("A")


def training_rows(ds: Dataset | IterableDataset, system: System, **filled: str) -> list[dict[str, Any]]:
    """Read what a system of relations may learn from (`hfcf.tasks.relation.learnable`): `COLUMNS`, filled ones and any `status`.

    Args:
        ds: the system's rows.
        system: whose own stages may have rejected them.
        **filled: the stage that fills each further column that is read.

    Raises:
        StageError: a column is missing.
    """
    columns = list(ds.column_names or [])
    for column in (*COLUMNS, *filled):
        if column not in columns:
            stage = filled.get(column)
            cure = f"map {system.name}.{stage} over the prepared rows first" if stage else "hfcf.load(…) makes rows that have it"
            raise StageError(f"{system.name}.fit reads the column {column!r}: {cure}")
    read = ds.select_columns([*COLUMNS, *filled, *(["status"] if "status" in columns else [])])
    return [dict(row) for row in learnable(read, system.chain)]


def check_folds(system: Any) -> None:
    """Raise `ValueError` if a system's `folds` are no number of folds."""
    if system.folds < 1:
        raise ValueError(f"folds is at least 1 and was {system.folds}")


def fit_indicator(system: Any, ds: Dataset | IterableDataset) -> dict[str, Any]:
    """Return the settings of a system that name its indicator: `indicator`, or with folds `cross_fitted`; none if it has one.

    Equal rows and settings give the same models, whichever system asks.

    Args:
        system: with `indicator`, `cross_fitted`, `classifier`, `folds` and `least_steps`.
        ds: the rows before any stage.

    Raises:
        StageError: there is no sound row.
    """
    if system.indicator is not None or system.cross_fitted is not None:
        return {}
    rows = indicator_rows(system, ds)
    if system.folds > 1 and len(rows) > 1:
        return {"cross_fitted": cross_fit(rows, lambda part: _settings(system, part), system.folds)}
    labels = sorted({row["label"] for row in rows})
    return {"indicator": stored_model(train_indicator(rows, _settings(system, rows), labels))}


def indicator_rows(system: Any, ds: Dataset | IterableDataset) -> list[dict[str, Any]]:
    """Return the rows that a system's indicators are trained on, with `COLUMNS`; raise `StageError` where there is none."""
    rows = [{column: row[column] for column in COLUMNS} for row in training_rows(ds, system)]
    if not rows:
        raise StageError(f"{system.name} has no row to train its indicator on: in all of them tokens, entities or label are broken")
    return rows


def _settings(system: Any, rows: Rows) -> Hyperparameters:
    return ensure_steps(system.classifier, system.least_steps, len(rows))


def train_indicator(rows: Rows, hp: Hyperparameters, labels: Sequence[str]) -> str:
    """Train an indicator, once; returns its digest (`hfcf.training.store.stored_model` names the model).

    Args:
        rows: with `COLUMNS`.
        hp: how.
        labels: its classes.
    """
    read = [[row["id"], row["tokens"], *spans(row), row["label"]] for row in rows]

    def train(out: Path) -> None:
        from hfcf.training.relation import train_relation

        features = Features({column: TASK.features[column] for column in COLUMNS})
        train_relation(Dataset.from_list(list(rows), features=features), hp, out, labels=labels)

    return train_once("indicator 2", {"rows": read, "labels": list(labels)}, hp, train)


def fit_judges(system: Any, ds: Dataset | IterableDataset) -> dict[str, Any]:
    """Return the setting `fold_judges` of a system with `judge_folds`: indicators of other folds and another seed than its own.

    Args:
        system: with `judge_folds`, `fold_judges`, `seed`, `classifier` and `least_steps`.
        ds: the rows before any stage.

    Raises:
        StageError: there is no sound row.
    """
    if not system.judge_folds or system.fold_judges is not None:
        return {}
    rows = indicator_rows(system, ds)
    if len(rows) < 2:
        raise StageError(f"{system.name} has one row, and none to train an indicator on that has not seen it: set judge_folds=0")

    def settings(part: Rows) -> Hyperparameters:
        return replace(_settings(system, part), seed=system.seed + 1)

    return {"fold_judges": cross_fit(rows, settings, system.judge_folds, deal="judges")}


def cross_fit(rows: Rows, hp: Callable[[Rows], Hyperparameters], folds: int, deal: str = "") -> str:
    """Train an indicator for each fold of the rows, on the rows outside it; return the sha256 of what `indicators_by_row` reads.

    The rows of each label are dealt out to the folds in turn, in the order of a hash of their ids, so that each indicator has seen
    every label that has several rows.

    Args:
        rows: with `COLUMNS`; more than one.
        hp: how to train on some rows.
        folds: 2 or more.
        deal: another text gives other folds.
    """
    order = sorted(rows, key=lambda row: (row["label"], hashlib.sha256(f"{deal}{row['id']}".encode()).digest()))
    fold = {row["id"]: i % min(folds, len(rows)) for i, row in enumerate(order)}
    labels = sorted({row["label"] for row in rows})
    parts = [[row for row in rows if fold[row["id"]] != number] for number in sorted(set(fold.values()))]
    return save_artifact({"indicators": [train_indicator(part, hp(part), labels) for part in parts], "folds": fold})


@lru_cache(maxsize=4)
def indicators_by_row(sha: str) -> dict[str, Model]:
    """Read the indicator of each row of the set that `cross_fit` saw, by the row's id."""
    content = read_artifact(sha, "run ccg = ccg.fit_models(ds) again")
    models = [stored_model(digest) for digest in content["indicators"]]
    return {row_id: models[number] for row_id, number in content["folds"].items()}


def ask_indicators(
    stage: Any, ids: Sequence[str], items: Sequence[Any], ask: Callable[[Model, list[Any]], Sequence[A]], unjudged: A
) -> list[A]:
    """Answer items by the indicators of their rows, each indicator asked once.

    Args:
        stage: with `indicator` and `cross_fitted`: the indicator of a row's fold, else `indicator`.
        ids: the row of each item.
        items: what is asked.
        ask: answers items by an indicator, in order.
        unjudged: the answer for a row that has no indicator.
    """
    of_rows = indicators_by_row(stage.cross_fitted) if stage.cross_fitted else {}
    indicators = [of_rows.get(row_id, stage.indicator) for row_id in ids]
    results = [unjudged] * len(items)
    for indicator in dict.fromkeys(indicator for indicator in indicators if indicator):
        places = [i for i, one in enumerate(indicators) if one == indicator]
        for i, answer in zip(places, ask(indicator, [items[i] for i in places]), strict=True):
            results[i] = answer
    return results
