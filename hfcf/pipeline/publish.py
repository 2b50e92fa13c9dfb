"""Publish a run as a dataset repository in a folder: Parquet, card, report, `run.json` and the recipe.

Rows are written a batch at a time. A `Dataset` also gets what needs all rows at once. This is metrics that are fitted to the whole
set, unique ids in `augmented`, and a held-out part of it. A stream gets none of them: it is one bounded pass, and its report holds
a sample of the rows. The card and `run.json` (`streamed`) list what was left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict, Features, IterableDataset

from hfcf.core import expand
from hfcf.core.columns import as_tables, decode, tables, without_format
from hfcf.core.funnel import Funnel
from hfcf.core.pairs import PAIR_FORMATS, pair
from hfcf.core.paths import remove_parts, replace_file
from hfcf.core.redact import redact, redact_values, short_path
from hfcf.core.schema import TEXT
from hfcf.core.splits import group_safe_split
from hfcf.core.task import Task, task_of
from hfcf.hub.dataset_card import dataset_card
from hfcf.hub.folder import SHARD_ROWS, Files, SplitWriter, configs, remove_others
from hfcf.hub.previous_run import write_record
from hfcf.metrics.shared.measure import measure, measure_candidates
from hfcf.metrics.shared.parsing import Metrics, parse_metrics
from hfcf.metrics.shared.summary import RunningMetrics, summaries
from hfcf.report import report
from hfcf.report.rows import LIMIT
from hfcf.training.data import not_for_training

BATCH = 1000
HELD_OUT = 0.1
"""The share of the groups that `augmented` holds out as `validation`."""
PAIRS = 10
"""Pairs that the card shows."""
STREAM_LIMIT = 5_000
"""Rows of a stream that its report holds."""
LIBRARIES = ("hfcf", "datasets", "transformers", "torch", "accelerate", "huggingface_hub", "peft", "captum", "POT")
NOT_CHECKED = (
    "duplicate ids were not looked for",
    "counterfactuals that two sources have in common were not looked for",
    "no part of augmented is held out as validation",
    "the seconds and calls of each stage are not known",
)


def publish(
    ds: Dataset | IterableDataset,
    out: Path,
    *,
    run: Mapping[str, Any],
    recipe: Mapping[str, Any],
    corpus: Mapping[str, Any],
    command: str,
    stages: Sequence[str],
    metrics: Metrics | None = None,
    pair_formats: Sequence[str] = (),
    shard_rows: int = SHARD_ROWS,
) -> dict[str, Any]:
    """Write the folder of a finished run; files of an older run are replaced.

    Args:
        ds: rows on which every stage ran.
        out: the folder.
        run: the entries of `run.json` that the rows do not tell.
        recipe: the recipe's content.
        corpus: the front matter of the corpus.
        command: what made the folder.
        stages: the names of the stages, in order.
        metrics: as `hfcf.measure` takes them.
        pair_formats: of `hfcf.pair`; each is a configuration of its name. A stream has none.
        shard_rows: rows of a file of a stream; a split of a `Dataset` is one file.

    Returns:
        The content of `run.json`.

    Raises:
        ValueError: no system ran on the rows, or they are a stream of rows with structures.
    """
    ds = without_format(ds)
    if "counterfactuals" not in (ds.features or ()):
        raise ValueError("there is no column 'counterfactuals': run a system first, ds = system(ds)")
    counts = Tally(task_of(ds.features), stages)
    rows = _Configurations(out / "data", counts.task, None if isinstance(ds, Dataset) else shard_rows)
    try:
        write = _write_dataset if isinstance(ds, Dataset) else _write_stream
        known = write(ds, rows, counts, run, metrics)
        if not counts.changes:  # without a counterfactual there is nothing to train on
            rows.writers["augmented"].discard()
        for pair_format in pair_formats:
            _write_pair_format(ds, rows, pair_format, run["seed"])
        paths = rows.close(corpus["labels"])
    except BaseException:
        rows.discard()
        raise
    entries = {
        **run, **counts.numbers(), "augmented": _describe_augmented(rows.writers["augmented"].counts, counts, known),
        "empty": [name for name, splits in paths.items() if not splits], **known["run"], "funnel": counts.funnel.entries(),
        "metrics": known["metrics"],
        **({"pair_formats": {name: rows.writers[name].counts for name in pair_formats}} if pair_formats else {}),
    }  # fmt: skip
    limit = LIMIT if isinstance(ds, Dataset) else STREAM_LIMIT
    return _write_folder(out, entries, paths, rows.pairs, limit, recipe=recipe, corpus=corpus, command=command)


class _Configurations:
    """The Parquet files of the configurations; also holds the labels of `augmented` and the first pairs."""

    def __init__(self, data: Path, task: Task, shard_rows: int | None) -> None:
        self.data, self.task, self.shard_rows = data, task, shard_rows
        self.writers: dict[str, SplitWriter] = {}
        self.labels: set[str] = set()
        self.pairs: list[dict[str, Any]] = []

    def open(self, **configurations: Features) -> None:
        """Open configurations with their columns."""
        for name, features in configurations.items():
            self.writers[name] = SplitWriter(self.data / name, features, self.shard_rows)

    def write(self, name: str, table: pa.Table, split: str | None = None) -> None:
        """Write rows to a split, or to the splits that they name; a rejected row has the split of its source."""
        if name == "default" and len(self.pairs) < PAIRS:
            self.pairs += [self.task.pair(row) for row in table.slice(0, PAIRS - len(self.pairs)).to_pylist()]
        if name == "augmented" and self.task.labelled:
            self.labels.update(table["label"].unique().to_pylist())
        if split:
            self.writers[name].write(table, split)
            return
        splits = pc.struct_field(table["source"], "split") if name == "rejected" else table["split"]
        for each in splits.unique().to_pylist():
            self.writers[name].write(table.filter(pc.equal(splits, each)), each)

    def write_all(self, name: str, ds: Dataset, split: str | None = None) -> None:
        """Write all rows of a dataset."""
        for table in tables(ds, ds.column_names, BATCH):
            self.write(name, table, split)

    def close(self, labels: Iterable[str]) -> dict[str, dict[str, Files]]:
        """Finish the files, with labels as classes: the labels of the corpus and of the rows to train on."""
        classes = self.task.class_names({*labels, *self.labels}) if self.task.labelled else None
        return {name: writer.close(classes) for name, writer in self.writers.items()}

    def discard(self) -> None:
        """Remove what was written, after an error."""
        for writer in self.writers.values():
            writer.discard()


def _write_dataset(
    ds: Dataset, rows: _Configurations, counts: Tally, run: Mapping[str, Any], metrics: Metrics | None
) -> dict[str, Any]:
    """Write the configurations of a dataset; return the entries of `run.json` that are known then."""
    made, augmented, lost = expand.expand(ds), expand.augmented(ds), expand.rejected(ds, system=run["system"])
    parsed = parse_metrics(metrics or {}, task_of(made.features).name)
    measured = measure(made, parsed)
    before = measure_candidates(measured, lost, parsed) if parsed else None
    numbers = summaries(measured, before, parsed) if parsed else {}
    measured = measured.remove_columns([column for column, metric in parsed.items() if not metric.about.published])
    rows.open(default=measured.features, augmented=augmented.features, rejected=lost.features)
    for table in tables(ds, [name for name in counts.columns if name in ds.features], BATCH):
        counts.add(table)
    rows.write_all("default", measured)
    rows.write_all("rejected", lost)
    divided = _hold_out(augmented, run)
    for split, part in (divided or {None: augmented}).items():
        rows.write_all("augmented", part, split)
    return {"metrics": numbers, "augmented": {"divided": divided is not None, "held_out": HELD_OUT}, "run": {}}


def _write_pair_format(ds: Dataset | IterableDataset, rows: _Configurations, pair_format: str, seed: int) -> None:
    """Write the counterfactuals and their originals in a pair format of `hfcf.pair`, with the splits of the counterfactuals."""
    if not isinstance(ds, Dataset):
        raise ValueError(f"pair_formats: {pair_format} needs the originals, which a stream does not keep: run a Dataset")
    made, places = expand.expand(ds), {name: i for i, name in reversed([*enumerate(ds["id"])])}
    originals = ds.select(sorted(places.values()))  # a row that repeats an id was rejected when it was loaded
    splits = list(made["split"])
    rows.open(**{pair_format: Features(dict.fromkeys(PAIR_FORMATS[pair_format], TEXT))})
    for split in dict.fromkeys(splits):
        part = made.select([i for i, name in enumerate(splits) if name == split])
        rows.write_all(pair_format, pair(part, originals, pair_format=pair_format, seed=seed), split)


def _write_stream(
    ds: IterableDataset, rows: _Configurations, counts: Tally, run: Mapping[str, Any], metrics: Metrics | None
) -> dict[str, Any]:
    """Write the configurations of a stream; return the entries of `run.json` that are known then."""
    features = Features(ds.features["counterfactuals"].feature)
    if counts.task.extends == task_of(features).name:
        raise ValueError("counterfactuals of rows with structures need their sources, which a stream does not keep: run a Dataset")
    running, rejected = RunningMetrics(metrics or {}, counts.task), expand.rejected_features(ds.features)
    rows.open(default=Features({**features, **running.features}), augmented=counts.task.features, rejected=rejected)
    columns = list(counts.task.features)
    for table in iterate_tables(ds, BATCH):
        counts.add(table.select([name for name in counts.columns if name in table.column_names]))
        values = [decode(table[name]) for name in (*columns, "status")]
        sound = [expand.is_sound(dict(zip((*columns, "status"), row, strict=True))) for row in zip(*values, strict=True)]
        rows.write("augmented", table.select(columns).filter(pa.array(sound, pa.bool_())))
        if len(made := expand.flatten(table.select(["counterfactuals"]))):
            rows.write("default", running.measure(made))
            rows.write("augmented", made.select(columns))
        for start in range(0, len(table), expand.BATCH):
            lost = expand.rejections(table.slice(start, expand.BATCH), rejected, str(run["system"]))
            rows.write("rejected", lost)
            running.measure_rejected(lost)
    left_out = [*NOT_CHECKED, *(f"{name} was not measured: it needs all rows" for name in running.left_out)]
    return {"metrics": running.summaries(), "augmented": {"divided": False}, "run": {"streamed": left_out}}


def iterate_tables(ds: IterableDataset, size: int) -> Iterator[pa.Table]:
    """Yield the rows of a stream as Arrow tables of its features."""
    kinds = ds.features.arrow_schema
    for batch in as_tables(ds).with_format("arrow").iter(size):
        yield batch.select(kinds.names).cast(kinds)


def _hold_out(rows: Dataset, run: Mapping[str, Any]) -> DatasetDict | None:
    """Split `augmented` into train and validation: no group and no text is on both sides.

    Rows of another split than "train" stay in it, unless the run says `role: train`; None is returned then.
    """
    names = {name for table in tables(rows, ["split"]) for name in table["split"].unique().to_pylist()}
    if not names or not_for_training(names, run["role"]):
        return None
    split = group_safe_split(rows, HELD_OUT, seed=run["seed"])
    # A group can be most of the rows, as when they share a page: whichever side it is on, hold out the smaller side.
    smaller, larger = sorted(split.values(), key=len)
    return DatasetDict({"train": larger, "validation": smaller})


def _describe_augmented(splits: Mapping[str, int], counts: Tally, known: Mapping[str, Any]) -> dict[str, Any] | None:
    if not splits:
        return None
    originals = sum(splits.values()) - counts.changes.total()
    return {
        "originals": originals, "counterfactuals": counts.changes.total(), "left_out": counts.funnel.rows_in - originals,
        "splits": dict(sorted(splits.items())), **known["augmented"],
    }  # fmt: skip


def _write_folder(
    out: Path, run: Mapping[str, Any], paths: Mapping[str, Mapping[str, Files]], pairs: Sequence[Mapping[str, Any]], limit: int, *,
    recipe: Mapping[str, Any], corpus: Mapping[str, Any], command: str,
) -> dict[str, Any]:  # fmt: skip
    """Write card, recipe, `run.json` and report next to a run's Parquet files, and remove the files of an older run."""
    written = [path for splits in paths.values() for files in splits.values() for path in files]
    private_texts = (recipe, run["settings"])
    run = redact_values(run, *private_texts)
    run_report = {
        **{key: value for key, value in run.items() if key not in ("funnel", "metrics")},
        "files": sorted(str(path.relative_to(out)) for path in written),
        **{key: run[key] for key in ("funnel", "metrics")},
        "versions": {library: version(library) for library in LIBRARIES},
    }
    card = dataset_card(
        name=short_path(str(recipe.get("name") or out.name)), command=command, corpus=corpus,
        configs=configs(out, {name: splits for name, splits in paths.items() if splits}),
        empty=run_report["empty"], run=run_report, examples=pairs, files=recipe.get("data_files") or recipe.get("data_dir"),
    )  # fmt: skip
    (out / "report.html").unlink(missing_ok=True)  # of the older run; it is written last, so a folder without it is not finished
    write_record(out, recipe, command)
    with replace_file(out / "run.json") as part:
        part.write_text(json.dumps(run_report, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    # The card names the files: until it is replaced the older run can be read, and afterwards this run.
    with replace_file(out / "README.md") as part:
        part.write_text(redact(card, *private_texts), encoding="utf-8")
    remove_parts(out, "README.md", "run.json", "recipe.yaml", "report.html")  # of a run that was killed
    remove_others(out / "data", written)
    report(out, limit=limit)
    return run_report


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

    @property
    def columns(self) -> list[str]:
        """The columns to read, if the rows have them."""
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
