"""Several metrics over a set of counterfactuals, and metrics of single rows over candidates that a filter rejected."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from datasets import Dataset, DatasetDict, Features, concatenate_datasets

from hfcf.core import schema
from hfcf.core.columns import iterate, with_label_names, without_format
from hfcf.core.mapping import map_stage
from hfcf.core.prepare import prepare
from hfcf.core.progress import quiet_few
from hfcf.core.stage import StageError
from hfcf.core.task import Task, get_task, task_of
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.parsing import Metrics, parse_metrics
from hfcf.tasks import DEFAULT

log = logging.getLogger(__name__)

Sets = TypeVar("Sets", Dataset, DatasetDict)


def measure(ds: Sets, metrics: Metrics | None = None, **map_kwargs: Any) -> Sets:
    """Map metrics over an expanded set: fit the metrics that need it, then score every row.

    Args:
        ds: one row for each counterfactual, from `hfcf.expand` or a published set's `default` configuration; several splits
            are measured separately.
        metrics: the metrics; by default `hfcf.metrics.shared.parsing.DEFAULT`. A list may hold names, `hfcf.Metric` classes or
            instances, and functions of two texts: the changed text and its source's. A mapping is {name: its settings}. Settings
            may have the form of a recipe: a model by its name or as a mapping, and `ner` as a mapping. `against` of "duplicates" is
            {name: rows, or a corpus as recipes name it}.
        map_kwargs: passed to `Dataset.map`.

    Returns:
        The same rows with a typed column for each metric, with the metric's name. If a metric can't score a row, the column is
        null.

    Raises:
        RecipeError: a metric or a setting is unknown.
        StageError: a metric does not support this task, or can't be fitted to these rows.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"id": "1", "claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> measure(Dataset.from_list([row]), ["minimality"])["minimality"][0]
    {'distance': 1, 'share': 0.25, 'kept': 0.66667}
    """
    if isinstance(ds, DatasetDict):
        return DatasetDict({split: measure(part, metrics, **map_kwargs) for split, part in ds.items()})
    if not isinstance(ds, Dataset):
        raise StageError(f"metrics: this is a {type(ds).__name__}, not a Dataset: map the stages of hfcf.metrics over a stream")
    ds = without_format(ds)
    return _measure(ds, parse_metrics(metrics, task_of(ds.column_names).name), ds, map_kwargs)


def _measure(ds: Dataset, stages: Mapping[str, Metric], of: Dataset, map_kwargs: Mapping[str, Any]) -> Dataset:
    """Measure metrics that are fitted to the rows `of`."""
    for column in stages:
        if column in ds.features:
            raise StageError(f"metrics: the column {column!r} already exists: remove it, or measure other metrics")
    plain, fit_to, parts = with_label_names(ds), with_label_names(of), [ds]
    for column, stage in stages.items():
        parts.append(_measured(plain, stage, fit_to, map_kwargs).select_columns([column]))
    if not len(ds):  # what has no rows would not be joined
        features = Features({name: feature for part in parts for name, feature in part.features.items()})
        return schema.no_rows(features)
    return concatenate_datasets(parts, axis=1)


def _measured(ds: Dataset, stage: Metric, of: Dataset, map_kwargs: Mapping[str, Any]) -> Dataset:
    for column in stage.inputs:
        if column not in ds.features:
            raise StageError(
                f"metrics: {stage.column} reads the column {column!r}, which is missing; hfcf.expand(ds) makes rows that have it"
            )
    prepared = prepare(ds.remove_columns([c for c in ("status",) if c in ds.features]), stage)
    if not len(ds):
        return prepared
    done = map_stage(prepared, stage.fit(of), map_kwargs if stage.cached else {**map_kwargs, "load_from_cache_file": False})
    rows = (row["status"] for row in iterate(done, ["status"]))
    lost = Counter(status["reason"] for status in rows if status and status["accepted"] is False)
    if lost:
        first = next(iter(lost))
        log.warning("%s: %d of %d rows could not be scored; the first: %s", stage.column, lost.total(), len(ds), first)
    return done


def measure_candidates(accepted: Dataset, rejected: Dataset, metrics: Metrics | None = None, **map_kwargs: Any) -> Dataset:
    """Measure the metrics of single rows over all candidates before filtering, both accepted and rejected.

    Args:
        accepted: the accepted counterfactuals, as `measure` returned them.
        rejected: see `candidates`.
        metrics: as `measure` takes them; only metrics of single rows are measured, as they were fitted to `accepted`.
        map_kwargs: passed to `Dataset.map`.

    Returns:
        One row for each candidate, with the columns of these metrics and of its texts and edits.
    """
    task = task_of(accepted.column_names)
    of_rows = {column: stage for column, stage in parse_metrics(metrics, task.name).items() if stage.of_candidates}
    columns = [*task.columns, "edits", *of_rows] if of_rows else []
    lost, texts = candidates(rejected), accepted.select_columns(columns)
    if not of_rows or not len(lost):
        return texts
    measured = _measure(lost, of_rows, accepted if len(accepted) else lost, map_kwargs).select_columns(columns)
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
        own = task_of(source)
        try:
            texts = own.counterfactual_row(source, made)
        except ValueError:  # rejected because its edits do not fit, or before it was complete
            continue
        edits = own.candidate_edits(source, made)
        yield {"id": f"{source['id']}:{i}", **texts, "edits": edits, "change": made["change"]}


def _edited_columns(batch: Mapping[str, list[Any]], indices: Sequence[int], names: Sequence[str]) -> dict[str, list[Any]]:
    rejected = (dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True))
    rows = list(edited_rows(rejected, indices[0]))
    return {name: [row.get(name) for row in rows] for name in names}
