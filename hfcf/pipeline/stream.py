"""Publish a stream of rows in one bounded pass: Parquet shards, card, report, `run.json` and recipe, as for a dataset.

A batch of rows is in memory at a time, beside counters and a bounded sample of the numbers of metrics. What needs all rows at
once is left out, and the card and `run.json` (`streamed`) say so: duplicate ids and counterfactuals that two sources have in
common are not looked for, metrics that are fitted to the whole set are not measured, and no part of `augmented` is held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Features, IterableDataset

from hfcf.core import expand
from hfcf.core.columns import as_tables, decode
from hfcf.core.task import Task, task_of
from hfcf.hub.shards import ROWS, Shards
from hfcf.metrics.shared.parsing import Metrics
from hfcf.metrics.shared.streaming import RunningMetrics
from hfcf.pipeline.publish import PAIRS, write_folder
from hfcf.pipeline.run_stats import Tally

BATCH = 1000
REPORT_ROWS = 5_000
"""Rows of the report: an even sample of those accepted and rejected."""
NOT_CHECKED = (
    "duplicate ids were not looked for",
    "counterfactuals that two sources have in common were not looked for",
    "no part of augmented is held out as validation",
    "the seconds and calls of each stage are not known",
)


def publish_stream(
    ds: IterableDataset,
    out: Path,
    *,
    run: Mapping[str, Any],
    recipe: Mapping[str, Any],
    corpus: Mapping[str, Any],
    command: str,
    stages: Sequence[str],
    metrics: Metrics | None = None,
    shard_rows: int = ROWS,
) -> dict[str, Any]:
    """Write the folder of a run over a stream; files of an older run are replaced."""
    if ds.features is None or "counterfactuals" not in ds.features:
        raise ValueError("there is no column 'counterfactuals': run a system first, ds = race(ds)")
    task = task_of(ds.features["counterfactuals"].feature)
    if task_of(ds.features).extends == task.name:
        raise ValueError("counterfactuals of rows with structures need their sources, which a stream does not keep: run a Dataset")
    writer = _Writer(ds.features, task, out, str(run["system"]), RunningMetrics(metrics or {}, task), shard_rows)
    counts = Tally(task, stages)
    try:
        for table in iterate_tables(ds, BATCH):
            counts.add(table.select([name for name in counts.columns if name in table.column_names]))
            writer.write(table)
        # Without a counterfactual there is nothing to train on.
        classes = task.class_names({*corpus["labels"], *counts.labels}) if task.labelled else None
        if not counts.changes:
            writer.shards["augmented"].discard()
        paths = {name: shards.close(None if name == "rejected" else classes) for name, shards in writer.shards.items()}
    except BaseException:
        for shards in writer.shards.values():
            shards.discard()
        raise
    return write_folder(
        out,
        {
            **run, **counts.numbers(),
            "augmented": writer.describe_augmented(counts),
            "empty": [name for name, splits in paths.items() if not splits],
            "streamed": [*NOT_CHECKED, *(f"{name} was not measured: it needs all rows" for name in writer.metrics.left_out)],
            "funnel": counts.funnel.entries(), "metrics": writer.metrics.summaries(),
        },
        paths, recipe=recipe, corpus=corpus, command=command, pairs=writer.pairs, limit=REPORT_ROWS,
    )  # fmt: skip


class _Writer:
    """Divide batches of rows over the configurations of the folder."""

    def __init__(self, features: Features, task: Task, out: Path, system: str, metrics: RunningMetrics, shard_rows: int) -> None:
        self.task, self.system, self.metrics = task, system, metrics
        self.rejected = expand.rejected_features(features)
        self.own = features["counterfactuals"].feature
        self.pairs: list[dict[str, Any]] = []
        kinds = {
            "default": Features({**self.own, **metrics.features}), "augmented": task.features, "rejected": self.rejected,
        }  # fmt: skip
        self.shards = {name: Shards(out / "data" / name, Features(kind), shard_rows) for name, kind in kinds.items()}

    def write(self, table: pa.Table) -> None:
        made = expand.flatten(table.select(["counterfactuals"]))
        self._write("augmented", self._sound(table))
        if len(made):
            measured = self.metrics.measure(made)
            self._write("default", measured)
            self._write("augmented", made.select(list(self.task.features)))
            if len(self.pairs) < PAIRS:
                shown = made.slice(0, PAIRS - len(self.pairs)).to_pylist()
                self.pairs += [self.task.pair(row) for row in shown]
        for start in range(0, len(table), expand.BATCH):
            lost = expand.rejections(table.slice(start, expand.BATCH), self.rejected, self.system)
            self._divide("rejected", lost, decode(pc.struct_field(lost["source"], "split")))
            self.metrics.measure_rejected(lost.select(["level", "source", "candidate"]).to_pylist())

    def _sound(self, table: pa.Table) -> pa.Table:
        """Return the sources that can be worked on, in the task's columns."""
        names = [*self.task.features, "status"]
        each = zip(*(decode(table[name]) for name in names), strict=True)
        sound = [expand.is_sound(dict(zip(names, row, strict=True))) for row in each]
        return table.select(list(self.task.features)).filter(pa.array(sound, pa.bool_()))

    def _write(self, config: str, table: pa.Table) -> None:
        self._divide(config, table, decode(table["split"]))

    def _divide(self, config: str, table: pa.Table, splits: Sequence[str]) -> None:
        for split in dict.fromkeys(splits):
            chosen = np.array([one == split for one in splits])
            self.shards[config].write(table if chosen.all() else table.filter(pa.array(chosen)), split)

    def describe_augmented(self, counts: Tally) -> dict[str, Any] | None:
        """Return the entry of `run.json`."""
        splits = dict(sorted(self.shards["augmented"].counts.items()))
        if not counts.changes:
            return None
        made, rows = counts.changes.total(), counts.funnel.rows_in
        originals = sum(splits.values()) - made
        return {"originals": originals, "counterfactuals": made, "left_out": rows - originals, "splits": splits, "divided": False}


def iterate_tables(ds: IterableDataset, size: int) -> Iterator[pa.Table]:
    """Yield the rows of a stream as Arrow tables of its features."""
    kinds = ds.features.arrow_schema
    for batch in as_tables(ds).with_format("arrow").iter(size):
        yield batch.select(kinds.names).cast(kinds)
