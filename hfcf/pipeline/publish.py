"""Publish a run as a dataset repository in a folder: Parquet, card, report, `run.json` and the recipe."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from datasets import ClassLabel, Dataset

from hfcf.core import expand
from hfcf.core.columns import iterate, tables, without_format
from hfcf.core.funnel import funnel
from hfcf.core.pairs import pair
from hfcf.core.paths import remove_parts, replace_file
from hfcf.core.redact import redact, redact_values, short_path
from hfcf.core.splits import divide, group_safe_split
from hfcf.core.task import Row, Task, task_of
from hfcf.hub.dataset_card import dataset_card
from hfcf.hub.folder import configs, remove_others, write_parquet
from hfcf.hub.previous_run import write_record
from hfcf.metrics.shared.measure import measure, measure_candidates
from hfcf.metrics.shared.parsing import Metrics, parse_metrics
from hfcf.metrics.shared.summary import summaries
from hfcf.report import report
from hfcf.training.data import not_for_training

HELD_OUT = 0.1
"""The share of the groups that `augmented` holds out as `validation`."""
PAIRS = 10
"""Pairs that the card shows."""
LIBRARIES = ("hfcf", "datasets", "transformers", "torch", "accelerate", "huggingface_hub", "peft", "captum", "POT")
Splits = dict[str, Dataset]


def publish(
    ds: Dataset, out: Path, *, run: Mapping[str, Any], recipe: Mapping[str, Any], corpus: Mapping[str, Any], command: str,
    stages: Sequence[str], metrics: Metrics | None = None, pair_formats: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
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
        pair_formats: of `hfcf.pair`; each is a configuration of its name.

    Returns:
        The content of `run.json`.

    Raises:
        ValueError: no system ran on the rows.
    """
    ds = without_format(ds)
    made, augmented, lost = expand.expand(ds), expand.augmented(ds), expand.rejected(ds, system=run["system"])
    task = task_of(made.features)
    parsed = parse_metrics(metrics or {}, task.name)
    measured = measure(made, parsed)
    numbers = summaries(measured, measure_candidates(measured, lost, parsed), parsed) if parsed else {}
    measured = measured.remove_columns([column for column, metric in parsed.items() if not metric.about.published])
    held_out = _hold_out(augmented, run)
    sets = {
        "default": divide(measured, measured["split"]), "augmented": held_out or divide(augmented, augmented["split"]),
        "rejected": divide(lost, _splits_of_sources(lost)),
        **{pair_format: _pairs(ds, made, pair_format, run["seed"]) for pair_format in pair_formats},
    }  # fmt: skip
    labels = {*corpus["labels"], *augmented.unique("label")} if task.labelled else set()
    paths = {name: _write_splits(splits, out / "data" / name, task, labels) for name, splits in sets.items()}
    sizes = {name: {split: len(rows) for split, rows in sorted(splits.items())} for name, splits in sets.items()}
    training = {
        "originals": len(augmented) - len(made), "counterfactuals": len(made), "left_out": len(ds) - len(augmented) + len(made),
        "splits": sizes["augmented"], "divided": held_out is not None, "held_out": HELD_OUT,
    }  # fmt: skip
    entries = {
        **run, **_count(ds, made, task_of(ds.features)), "augmented": training if len(augmented) else None,
        "empty": [name for name, splits in sets.items() if not splits], "funnel": funnel(ds, stages), "metrics": numbers,
        **({"pair_formats": {name: sizes[name] for name in pair_formats}} if pair_formats else {}),
    }  # fmt: skip
    examples = [task.pair(row) for row in measured.select(range(min(PAIRS, len(measured))))]
    return _write_folder(out, entries, paths, examples, recipe=recipe, corpus=corpus, command=command)


def _splits_of_sources(lost: Dataset) -> Iterator[str]:
    """Yield the split of the source of each rejected row."""
    for table in tables(lost, ["source"]):
        yield from pc.struct_field(table["source"], "split").to_pylist()


def _write_splits(splits: Splits, folder: Path, task: Task, labels: set[str]) -> dict[str, Path]:
    """Write the splits of a configuration, with labels as classes."""
    paths = {}
    for split, rows in sorted(splits.items()):
        if task.labelled and "label" in rows.features:
            rows = rows.cast_column("label", ClassLabel(names=task.class_names(labels)))
        paths[split] = write_parquet(rows, folder, split)
    return paths


def _pairs(ds: Dataset, made: Dataset, pair_format: str, seed: int) -> Splits:
    """Pair counterfactuals with their originals in a format of `hfcf.pair`, by the splits of the counterfactuals."""
    places = {name: i for i, name in reversed([*enumerate(ds["id"])])}
    originals = ds.select(sorted(places.values()))  # a row that repeats an id was rejected when it was loaded
    parts = divide(made, made["split"]).items()
    pairs = {split: pair(part, originals, pair_format=pair_format, seed=seed) for split, part in parts}
    return {split: rows for split, rows in pairs.items() if len(rows)}


def _hold_out(rows: Dataset, run: Mapping[str, Any]) -> Splits | None:
    """Split `augmented` into train and validation: no group and no text is on both sides.

    Rows of another split than "train" stay in it, unless the run says `role: train`; None is returned then.
    """
    names = rows.unique("split")
    if not names or not_for_training(names, run["role"]):
        return None
    # A group can be most of the rows, as when they share a page: whichever side it is on, hold out the smaller side.
    smaller, larger = sorted(group_safe_split(rows, HELD_OUT, seed=run["seed"]).values(), key=len)
    return {"train": larger, **({"validation": smaller} if len(smaller) else {})}


def _write_folder(
    out: Path, run: Mapping[str, Any], paths: Mapping[str, Mapping[str, Path]], pairs: Sequence[Mapping[str, Any]], *,
    recipe: Mapping[str, Any], corpus: Mapping[str, Any], command: str,
) -> dict[str, Any]:  # fmt: skip
    """Write card, recipe, `run.json` and report next to a run's Parquet files, and remove the files of an older run."""
    written = [path for splits in paths.values() for path in splits.values()]
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
    report(out)
    return run_report


def _count(ds: Dataset, made: Dataset, task: Task) -> dict[str, Any]:
    """Count rows, verdicts, changes and labels for `run.json`."""
    names = ["label"] if task.labelled else [name for name in task.columns if name in ds.features]
    outcomes: Callable[[Row], Any] = itemgetter("label") if task.labelled else task.outcome
    sources = iterate(ds, [*names, "counterfactuals"])
    before = (outcome for row in sources for outcome in [outcomes(row)] * len(row["counterfactuals"] or ()))
    labels, kept = Counter[Any](), 0
    for source, row in zip(before, iterate(made, names), strict=True):
        labels[outcomes(row)] += 1
        kept += source == outcomes(row)
    accepted = sum(bool(row["status"] and row["status"]["accepted"]) for row in iterate(ds, ["status"]))
    return {
        "rows_in": len(ds), "sources_accepted": accepted, "sources_rejected": len(ds) - accepted, "counterfactuals": len(made),
        "changes": dict(sorted(Counter(made["change"]).items())), "labels": dict(sorted(labels.items())) if task.labelled else {},
        "labels_kept": kept,
    }  # fmt: skip
