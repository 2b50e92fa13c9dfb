"""The numbers of a run that its card and `run.json` state, counted in one pass over batches of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from hfcf.core.columns import decode, tables
from hfcf.core.funnel import Funnel
from hfcf.core.task import Task, task_of


class Tally:
    """Count rows, verdicts, changes and labels; it holds counters alone, however many rows there are.

    Args:
        task: of the rows.
        stages: the names of the stages, in order.
    """

    def __init__(self, task: Task, stages: Sequence[str]) -> None:
        self.task, self.funnel = task, Funnel(stages)
        self.accepted = self.labels_kept = 0
        self.changes: Counter[str] = Counter()
        self.outcomes: Counter[Any] = Counter()
        self.labels: set[str] = set()
        """Every label of the rows and of the counterfactuals."""

    @property
    def columns(self) -> list[str]:
        """The columns of the rows that are read, those of them that are there."""
        return [*({"label": 0} if self.task.labelled else self.task.columns), "status", "counterfactuals", "candidates"]

    def add(self, table: pa.Table) -> None:
        """Count rows on which every stage of a system ran."""
        self.funnel.add(table)
        self.accepted += pc.sum(pc.cast(pc.struct_field(table["status"], "accepted"), pa.int64())).as_py() or 0
        lists = table["counterfactuals"].combine_chunks()
        made, parents = pc.list_flatten(lists), pc.list_parent_indices(lists)
        before = self._outcomes({name: table[name] for name in table.column_names})
        after = self._outcomes({field.name: pc.struct_field(made, field.name) for field in made.type})
        self.outcomes.update(after)
        self.changes.update(decode(pc.struct_field(made, "change")))
        self.labels_kept += sum(before[i] == outcome for i, outcome in zip(parents.to_pylist(), after, strict=True))
        if self.task.labelled:
            self.labels.update(label for label in (*before, *after) if label is not None)

    def _outcomes(self, columns: dict[str, Any]) -> list[Any]:
        if self.task.labelled:
            return decode(columns["label"])
        names = [name for name in self.task.columns if name in columns]
        rows = zip(*(decode(columns[name]) for name in names), strict=True)
        return [self.task.outcome(dict(zip(names, row, strict=True))) for row in rows]

    def numbers(self) -> dict[str, Any]:
        """Return the entries of `run.json`."""
        rows = self.funnel.rows_in
        return {
            "rows_in": rows,
            "sources_accepted": self.accepted,
            "sources_rejected": rows - self.accepted,
            "counterfactuals": self.changes.total(),
            "changes": dict(sorted(self.changes.items())),
            "labels": dict(sorted(self.outcomes.items())) if self.task.labelled else {},
            "labels_kept": self.labels_kept,
        }


def tally(ds: Dataset, stages: Sequence[str]) -> Tally:
    """Count the rows of a dataset on which every stage ran."""
    counts = Tally(task_of(ds.features), stages)
    for table in tables(ds, [name for name in counts.columns if name in ds.features]):
        counts.add(table)
    return counts
