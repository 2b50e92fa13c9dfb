"""A finished run as a dataset repository in a folder: Parquet, card, report, `run.json` and the recipe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset

from hfcf.core import expand as augment
from hfcf.core.columns import iterate, tables, without_format
from hfcf.core.local_paths import publishable, publishable_values, short
from hfcf.core.paths import remove_parts, replace_file
from hfcf.core.splits import divide, group_safe_split, regroup
from hfcf.core.task import task_of
from hfcf.hub.dataset_card import dataset_card
from hfcf.hub.existing_result import write_record
from hfcf.hub.folder import Files, as_list, configs, remove_others, write_parquet
from hfcf.metrics.shared.measure import measure, measure_candidates
from hfcf.metrics.shared.parsing import Metrics, parse_metrics
from hfcf.metrics.shared.summary import summaries
from hfcf.pipeline.run_stats import tally
from hfcf.report import report
from hfcf.training.data import not_for_training

HELD_OUT = 0.1
"""The share of the groups that `augmented` holds out as `validation`."""
PAIRS = 10
"""Pairs that the card shows."""
LIBRARIES = ("hfcf", "datasets", "transformers", "torch", "accelerate", "huggingface_hub", "peft", "captum", "POT")


def publish(
    ds: Dataset,
    out: Path,
    *,
    run: Mapping[str, Any],
    recipe: Mapping[str, Any],
    corpus: Mapping[str, Any],
    command: str,
    stages: Sequence[str],
    metrics: Metrics | None = None,
) -> dict[str, Any]:
    """Write the folder of a finished run; files of an older run are replaced."""
    ds = without_format(ds)
    task = task_of(ds.features)
    configurations = {
        "default": augment.expand(ds),
        "augmented": augment.augmented(ds),
        "rejected": augment.rejected(ds, system=run["system"]),
    }
    measures = parse_metrics(metrics or {}, task_of(configurations["default"].features).name)
    measured = measure(configurations["default"], measures)
    before = measure_candidates(measured, configurations["rejected"], measures) if measures else None
    numbers = summaries(measured, before, measures) if measures else {}
    private = [column for column, stage in measures.items() if not stage.published]
    counterfactuals = configurations["default"] = measured.remove_columns(private)
    parts = {name: _by_split(part) for name, part in configurations.items()}
    parts["augmented"], divided = _training_splits(configurations["augmented"], run)
    # Classes are the corpus's own labels, also those that no row has, and of a user's own files those of the rows;
    # a label that could not be read is none.
    counts = tally(ds, stages)
    labels = {*corpus["labels"], *_labels(configurations["augmented"])}
    paths = {
        name: {split: write_parquet(_classes(rows, labels), out / "data" / name, split) for split, rows in splits.items()}
        for name, splits in parts.items()
    }
    run_report = {
        **run,
        **counts.numbers(),
        "augmented": _describe_augmented(parts["augmented"], len(counterfactuals), len(ds), divided),
        "empty": [name for name, part in configurations.items() if not len(part)],
        "funnel": counts.funnel.entries(),
        "metrics": numbers,
    }
    pairs = [task.pair(row) for row in islice(counterfactuals, PAIRS)]
    return write_folder(out, run_report, paths, recipe=recipe, corpus=corpus, command=command, pairs=pairs)


def write_folder(
    out: Path, run: Mapping[str, Any], paths: Mapping[str, Mapping[str, Files]], *, recipe: Mapping[str, Any],
    corpus: Mapping[str, Any], command: str, pairs: Sequence[Mapping[str, Any]], **report_options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Write card, recipe, `run.json` and report beside a run's Parquet files, and remove those of an older run."""
    written = [path for splits in paths.values() for files in splits.values() for path in as_list(files)]
    private_texts = (recipe, run["settings"])
    run = publishable_values(run, *private_texts)
    run_report = {
        **{key: value for key, value in run.items() if key not in ("funnel", "metrics")},
        "files": sorted(str(path.relative_to(out)) for path in written),
        **{key: run[key] for key in ("funnel", "metrics")},
        "versions": {library: version(library) for library in LIBRARIES},
    }
    card = dataset_card(
        name=short(str(recipe.get("name") or out.name)), command=command, corpus=corpus,
        configs=configs(out, {name: splits for name, splits in paths.items() if splits}),
        empty=run_report["empty"], run=run_report, examples=pairs, files=recipe.get("data_files") or recipe.get("data_dir"),
    )  # fmt: skip
    (out / "report.html").unlink(missing_ok=True)  # of the older run; it is written last, so a folder without it is not finished
    write_record(out, recipe, command)
    with replace_file(out / "run.json") as part:
        part.write_text(json.dumps(run_report, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    # The card names the files: until it is replaced the older run can be read, and afterwards this one.
    with replace_file(out / "README.md") as part:
        part.write_text(publishable(card, *private_texts), encoding="utf-8")
    remove_parts(out, "README.md", "run.json", "recipe.yaml", "report.html")  # of a run that was killed
    remove_others(out / "data", written)
    report(out, **report_options)
    return run_report


def _training_splits(rows: Dataset, run: Mapping[str, Any]) -> tuple[dict[str, Dataset], bool]:
    """Split `augmented` into train and validation; return also whether it was split: no group and no text is then on both sides.

    Rows of another split than "train" stay in it, unless the run says `role: train`.
    """
    official = _by_split(rows)
    if not len(rows) or not_for_training(official, run["role"]):
        return official, False
    split = group_safe_split(rows, HELD_OUT, seed=run["seed"], groups=regroup(rows))
    # A group can be most of the rows, as when they share a page: wherever it fell, the smaller side is the one held out.
    smaller, larger = sorted(split.values(), key=len)
    return {name: part for name, part in (("train", larger), ("validation", smaller)) if len(part)}, True


def _describe_augmented(splits: Mapping[str, Dataset], counterfactuals: int, rows_in: int, divided: bool) -> dict[str, Any] | None:
    if not splits:
        return None
    sizes = {split: len(part) for split, part in splits.items()}
    originals = sum(sizes.values()) - counterfactuals
    return {
        "originals": originals, "counterfactuals": counterfactuals, "left_out": rows_in - originals, "splits": sizes,
        "divided": divided, "held_out": HELD_OUT,
    }  # fmt: skip


def _labels(ds: Dataset) -> set[str]:
    """Return the labels of rows whose task has them."""
    if "label" not in ds.features:
        return set()
    return {label for table in tables(ds, ["label"]) for label in table["label"].unique().to_pylist()}


def _classes(ds: Dataset, labels: Iterable[str]) -> Dataset:
    """Cast labels to classes, as trainers and the Hub expect; inside the library they are strings."""
    if "label" not in ds.features:
        return ds
    return ds.cast_column("label", ClassLabel(names=task_of(ds.features).class_names(labels)))


def _by_split(ds: Dataset) -> dict[str, Dataset]:
    """Divide rows by official split (a rejected row's is its source's)."""
    column = "split" if "split" in ds.features else "source"
    names = (row["split"] if column == "split" else row["source"]["split"] for row in iterate(ds, [column]))
    return dict(sorted(divide(ds, names).items()))
