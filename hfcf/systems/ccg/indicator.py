"""Train CCG's indicator, an R-BERT, on the given rows; or an indicator for each fold, so that none judges a row it was trained on.

It is the base model of MICE, AutoCAD and CoCo too. Equal rows and settings give the same models in every stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from datasets import Dataset, Features, IterableDataset

from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.model import Model
from hfcf.core.settings import Judges, TrainedBy, Trains
from hfcf.core.splits import connected
from hfcf.core.stage import StageError
from hfcf.tasks.relation import TASK, learnable, spans
from hfcf.text.normalise import normalise
from hfcf.training.model_cache import ensure_steps, stored_model, train_once
from hfcf.training.trainer import Hyperparameters

CLASSIFIER = Hyperparameters(
    model=Model("bert-base-uncased"), max_length=128, batch_size=16, learning_rate=2e-5, weight_decay=0.0, epochs=5
)
"""R-BERT's own; CCG's paper follows it."""
IndicatorModel = Annotated[Model, TrainedBy("train_relation"), Judges()]
"""The type of a setting: an R-BERT."""
IndicatorTraining = Annotated[Hyperparameters, Trains("indicator")]
"""The type of a setting: how an indicator is trained on the rows."""

COLUMNS = ("id", "tokens", "head", "tail", "label")
"""What a training reads of a row."""
UNJUDGED = "no indicator was trained for this row: system.fit(ds) trains them on the rows of ds"
"""Why there is no answer for a row that no fold has."""

Rows = Sequence[Mapping[str, Any]]
A = TypeVar("A")


def training_rows(ds: Dataset | IterableDataset, *filled: str) -> list[dict[str, Any]]:
    """Read what may be learned from (`hfcf.tasks.relation.learnable`): `COLUMNS`, columns that stages filled, and any `status`."""
    status = ["status"] if "status" in (ds.column_names or []) else []
    return [dict(row) for row in learnable(ds.select_columns([*COLUMNS, *filled, *status]))]


def learn_indicators(
    stage: str, ds: Dataset | IterableDataset, hp: Hyperparameters, folds: int, min_steps: int, deal: str = ""
) -> str:
    """Train an indicator on the rows, or on the rows outside each fold; return the sha256 of what `ask_indicators` reads.

    Args:
        stage: the name of the stage, for errors.
        ds: the rows.
        hp: how.
        folds: how many.
        min_steps: of each training.
        deal: another text gives other folds.

    Raises:
        StageError: there is no sound row, or only one sentence for several folds of `deal`.
    """
    rows = [{column: row[column] for column in COLUMNS} for row in training_rows(ds)]
    if not rows:
        raise StageError(f"{stage} has no row to train its indicator on: tokens, entities or label are broken in all of them")
    labels = sorted({row["label"] for row in rows})
    # The sentences of each label are dealt out to the folds in turn, in the order of a hash of their ids, so that each indicator
    # has seen every label that has several. Rows of one sentence go to one fold.
    order = sorted(rows, key=lambda row: (row["label"], hashlib.sha256(f"{deal}{row['id']}".encode()).digest()))
    groups = connected([(kind, normalise(text)) for kind, text in TASK.identity(row)] for row in order)
    turn = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    if deal and len(turn) < 2:
        raise StageError(f"{stage} has only one sentence, so no indicator can be trained without it: set judge_folds=0")
    if folds == 1 or len(turn) == 1:
        return _save([rows], None, labels, hp, min_steps)
    fold = {row["id"]: turn[group] % min(folds, len(turn)) for row, group in zip(order, groups, strict=True)}
    parts = [[row for row in rows if fold[row["id"]] != number] for number in sorted(set(fold.values()))]
    return _save(parts, fold, labels, hp, min_steps)


def _save(
    parts: Sequence[Rows], folds: Mapping[str, int] | None, labels: Sequence[str], hp: Hyperparameters, min_steps: int
) -> str:
    digests = [_train(part, ensure_steps(hp, min_steps, len(part)), labels) for part in parts]
    # Another training of equal rows may give other weights.
    contents = [stored_model(digest).key() for digest in digests]
    return save_artifact({"indicators": digests, "contents": contents, "folds": folds})


def _train(rows: Rows, hp: Hyperparameters, labels: Sequence[str]) -> str:
    read = [[row["id"], row["tokens"], *spans(row), row["label"]] for row in rows]

    def train(out: Path) -> None:
        from hfcf.training.relation import train_relation

        features = Features({column: TASK.features[column] for column in COLUMNS})
        train_relation(Dataset.from_list(list(rows), features=features), hp, out, labels=labels)

    return train_once("indicator 2", {"rows": read, "labels": list(labels)}, hp, train)


@lru_cache(maxsize=4)
def _fitted(sha: str) -> tuple[list[Model], dict[str, int] | None]:
    content = read_artifact(sha, "run system = system.fit(ds) again")
    return [stored_model(digest) for digest in content["indicators"]], content["folds"]


def ask_indicators(
    indicator: Model | None, fitted: str | None, ids: Sequence[str], items: Sequence[Any],
    ask: Callable[[Model, list[Any]], Sequence[A]], unjudged: A,
) -> list[A]:  # fmt: skip
    """Answer items by the indicators of their rows, each indicator asked once.

    Args:
        indicator: the indicator of all rows; None: the indicators of `fitted`.
        fitted: the file of `learn_indicators`.
        ids: the row of each item.
        items: what is asked.
        ask: answers items by an indicator, in order.
        unjudged: the answer for a row that has no indicator.
    """
    models, folds = ([indicator], None) if indicator is not None else _fitted(fitted or "")
    numbers = [0 if folds is None else folds.get(row_id, -1) for row_id in ids]
    results = [unjudged] * len(items)
    for number, model in enumerate(models):
        places = [i for i, row_number in enumerate(numbers) if row_number == number]
        for i, answer in zip(places, ask(model, [items[i] for i in places]) if places else [], strict=True):
            results[i] = answer
    return results
