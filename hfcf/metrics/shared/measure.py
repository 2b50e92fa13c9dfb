"""Several metrics over a set of counterfactuals, and metrics of single rows over candidates that a filter rejected."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from datasets import Dataset, DatasetDict, Features, concatenate_datasets

from hfcf.core import schema
from hfcf.core.columns import iterate, why_repeated, with_label_names, without_format
from hfcf.core.progress import quiet_few
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import Task, get_task, task_of
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.parsing import Metrics, parse_metrics
from hfcf.tasks import DEFAULT

log = logging.getLogger(__name__)

Sets = TypeVar("Sets", Dataset, DatasetDict)


def measure(ds: Sets, metrics: Metrics | None = None) -> Sets:
    """Score every row of an expanded set by metrics.

    Args:
        ds: one row for each counterfactual, from `hfcf.expand` or a published set's `default` configuration; several splits
            are measured separately.
        metrics: the metrics; by default `hfcf.metrics.shared.parsing.DEFAULT`. A list may hold names and functions: of rows, see
            `hfcf.metrics.shared.metric.metric`, or of two texts, the changed text and its source's. A mapping is {name: its
            settings}. Settings may have the form of a recipe: a model by its name or as a mapping, and `ner` as a mapping.
            `against` of "duplicates" is {name: rows, or a corpus as recipes name it}.

    Returns:
        The same rows with a typed column for each metric, with the metric's name. If a metric can't score a row, the column is
        null.

    Raises:
        RecipeError: a metric or a setting is unknown.
        StageError: a metric does not support this task, or can't learn from these rows.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"id": "1", "claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> measure(Dataset.from_list([row]), ["minimality"])["minimality"][0]
    {'distance': 1, 'share': 0.25, 'kept': 0.66667}
    """
    if isinstance(ds, DatasetDict):
        return DatasetDict({split: measure(part, metrics) for split, part in ds.items()})
    if not isinstance(ds, Dataset):
        raise StageError(f"metrics: this is a {type(ds).__name__}, not a Dataset: read its rows first")
    ds = without_format(ds)
    return _measure(ds, parse_metrics(metrics, task_of(ds.column_names).name), ds)


def _measure(ds: Dataset, metrics: Mapping[str, Metric], learn_from: Dataset) -> Dataset:
    """Add the column of each metric, which learns from the rows `learn_from`."""
    for column in metrics:
        if column in ds.features:
            raise StageError(f"metrics: the column {column!r} already exists: remove it, or measure other metrics")
    rows, every, parts = with_label_names(ds), with_label_names(learn_from), [ds]
    for column, metric in metrics.items():
        _check_columns(metric, every)
        scores = score_column(metric, rows, metric.learn(every) if len(rows) else None) if len(rows) else []
        parts.append(Dataset.from_dict({column: scores}, features=Features({column: metric.about.outputs})))
    if not len(ds):  # what has no rows would not be joined
        return schema.no_rows(Features({name: feature for part in parts for name, feature in part.features.items()}))
    return concatenate_datasets(parts, axis=1)


def _check_columns(metric: Metric, rows: Dataset) -> None:
    declared = metric.about
    for column in (*metric.columns, *declared.learns_from):
        if column not in rows.features:
            raise StageError(
                f"metrics: {metric.name} reads the column {column!r}, which is missing; hfcf.expand(ds) makes rows that have it"
            )
    if "id" in declared.learns_from and (why := why_repeated(rows)):
        raise StageError(f"metrics: {metric.name}: {why}")


def score_column(metric: Metric, rows: Dataset, learned: Any = None) -> list[Any]:
    """Return a metric's score of each row, None for a row that can't be scored; the log counts these rows."""
    scores = metric(rows, learned)
    lost = Counter(score.reason for score in scores if isinstance(score, Reject))
    if lost:
        log.warning("%s: %d of %d rows could not be scored; the first: %s", metric.name, lost.total(), len(rows), next(iter(lost)))
    return [None if isinstance(score, Reject) else score for score in scores]


def measure_candidates(accepted: Dataset, rejected: Dataset, metrics: Metrics | None = None) -> Dataset:
    """Measure the metrics of single rows over all candidates before filtering, both accepted and rejected.

    Args:
        accepted: the accepted counterfactuals, as `measure` returned them.
        rejected: see `candidates`.
        metrics: as `measure` takes them; only metrics of single rows are measured, with what they learn from `accepted`.

    Returns:
        One row for each candidate, with the columns of these metrics and of its texts and edits.
    """
    task = task_of(accepted.column_names)
    of_rows = {column: metric for column, metric in parse_metrics(metrics, task.name).items() if metric.about.of_candidates}
    columns = [*task.columns, "edits", *of_rows] if of_rows else []
    lost, texts = candidates(rejected), accepted.select_columns(columns)
    if not of_rows or not len(lost):
        return texts
    measured = _measure(lost, of_rows, accepted if len(accepted) else lost).select_columns(columns)
    return concatenate_datasets([texts, measured.cast(texts.features)])


def candidates(rejected: Dataset) -> Dataset:
    """Turn the rejected candidates of a run into rows of an expanded set, so that metrics can score what a filter rejected.

    Args:
        rejected: from `hfcf.rejected`, or a published set's `rejected` configuration.

    Returns:
        A row for each candidate whose edits fit its source, with the columns that metrics of single rows read.
    """
    rejected, columns = without_format(rejected), ["level", "source", "candidate"]
    first = next(edited_rows(iterate(rejected, columns)), None)
    if first is None:
        return schema.no_rows(candidate_features(get_task(DEFAULT)))
    features = candidate_features(task_of(first))
    with quiet_few(len(rejected)):
        return rejected.select_columns(columns).map(
            _edited_columns, batched=True, with_indices=True, remove_columns=columns, features=features,
            fn_kwargs={"names": list(features)}, desc="candidates", load_from_cache_file=False,  # tasks' code is not in its key
        )  # fmt: skip


def candidate_features(task: Task) -> Features:
    """Return the columns of `candidates`.

    Entities move along with the edits. Edits do not have the types of entities, so the types are the source's. No metric reads the
    types, or the columns that a task adds to its counterfactuals, such as `stale` of structures.
    """
    canonical = {name: feature for name, feature in task.features.items() if name not in schema.COMMON}
    return Features({**canonical, "edits": schema.EDITS, "change": schema.TEXT})


def edited_rows(rejected: Iterable[Mapping[str, Any]], number: int = 0) -> Iterator[dict[str, Any]]:
    """Yield each rejected candidate whose edits fit its source as a row; `number` of the first row is in its id."""
    for i, row in enumerate(rejected, number):
        if row["level"] != "candidate":
            continue
        source, made = row["source"], row["candidate"]
        task = task_of(source)
        try:
            texts = task.counterfactual_row(source, made)
        except ValueError:  # rejected because its edits do not fit, or before it was complete
            continue
        edits = task.candidate_edits(source, made)
        yield {"id": f"{source['id']}:{i}", **texts, "edits": edits, "change": made["change"]}


def _edited_columns(batch: Mapping[str, list[Any]], indices: Sequence[int], names: Sequence[str]) -> dict[str, list[Any]]:
    rejected = (dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True))
    rows = list(edited_rows(rejected, indices[0]))
    return {name: [row.get(name) for row in rows] for name in names}
