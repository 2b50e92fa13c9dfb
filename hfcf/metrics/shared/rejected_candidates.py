"""Rejected candidates as rows of an expanded set, so that metrics can score what a filter took away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset, Features

from hfcf.core import schema
from hfcf.core.columns import iterate, without_format
from hfcf.core.progress import quiet_few
from hfcf.core.task import Task, get_task, task_of
from hfcf.tasks import DEFAULT


def candidates(rejected: Dataset) -> Dataset:
    """Turn the rejected candidates of a run into rows of an expanded set, so that metrics can score what a filter took away.

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

    Entities moved along with the edits; their types, which no edit has, are the source's and no metric reads them. Nor does one
    read the columns that a task adds to its counterfactuals, as structures have `stale`.
    """
    canonical = {name: feature for name, feature in task.features.items() if name not in schema.COMMON}
    return Features({**canonical, "edits": schema.EDITS, "change": schema.TEXT})


def edited_rows(rejected: Iterable[Mapping[str, Any]], number: int = 0) -> Iterator[dict[str, Any]]:
    """Yield what each rejected candidate whose edits fit its source would be as a row; `number` of the first row is in its id."""
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
