"""The rows that commands take: of a run's folder, of files (JSON lines, CSV, Parquet), or in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, List

from hfcf import corpora
from hfcf.core.task import Task, nearest_task
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.detect import describe_file
from hfcf.corpora.formats.read import csv_rows, json_lines

RowSet = str | Path | Iterable[Mapping[str, Any]]
"""A `Dataset`, rows, a file (`.parquet`, `.jsonl`, `.csv`), or a folder: of a run, or of such files."""
_ENDINGS = (".parquet", ".jsonl", ".csv")


def load_file(
    path: str | Path, tasks: Sequence[str] = (), *, given: Mapping[str, Any] | None = None, on_error: str = "raise"
) -> Dataset:
    """Load a user's file with the canonical columns of its task, as `hfcf.load` reads it, whatever its columns are.

    Args:
        path: JSON lines, CSV or Parquet.
        tasks: the tasks that its rows may have; by default any task whose columns or layouts they fit.
        given: the user's `columns` and `labels`, as `hfcf.from_dataset` takes them; what is not given is guessed.
        on_error: see `hfcf.load`.

    Raises:
        CorpusError: the file does not exist, a row can't be read, or its columns can't be guessed.
    """
    _, source, _ = describe_file(path, tasks, given or {})
    source |= given or {}
    corpus, options = source.pop("corpus"), source.pop("options", {})
    if "data_files" in source:  # one split, whatever the file is called
        source["data_files"] = {"train": str(path)}
    return corpora.load(corpus, split="train", on_error=on_error, **source, **options)


def read_rows(rows: RowSet, needs: Collection[str] = (), *, on_error: str = "raise") -> Iterator[dict[str, Any]]:
    """Yield the rows of a set, with labels as text; for a run's folder, its counterfactuals.

    `load_file` reads a row of a file that lacks a column of `needs` that its task has, or has it in another form. Its other columns
    stay. With on_error="reject", a row that can't be read has a `status` that says why.
    """
    if not isinstance(rows, (str, Path)):
        yield from _name_labels(rows)
        return
    task = nearest_task(frozenset(needs))
    for file in _files(Path(rows)):
        for i, row in enumerate(_raw(file, strict=on_error == "raise")):
            if task and not _fits(row, needs, task):
                yield from _loaded(file, needs, task, on_error, i)
                break
            yield row


def _loaded(file: Path, needs: Collection[str], task: Task, on_error: str, skip: int) -> Iterator[dict[str, Any]]:
    """Yield a file's rows from a given row on; its loader reads rows in another form."""
    raw = _raw(file, strict=False)
    try:
        loaded: Iterable[dict[str, Any]] = load_file(file, (task.name,), on_error=on_error)
    except LayoutError:  # the caller that needs the columns says which are missing
        yield from islice(raw, skip, None)
        return
    for own, row in islice(zip(raw, loaded, strict=True), skip, None):
        if row.get("status") is None:
            row.pop("status", None)
        yield own if _fits(own, needs, task) else {**own, **row}


def _raw(file: Path, *, strict: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file as they are; a line that can't be read is an error, or a row without columns."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        # The cache of `datasets` may hold an older file of that name.
        yield from _name_labels(Dataset(pq.read_table(file)))
        return
    for record in csv_rows(file) if file.suffix == ".csv" else json_lines(file):
        if record.unreadable and strict:
            raise ValueError(f"{file}, {record.unreadable}: write a JSON object on each line")
        yield {} if record.unreadable else dict(record.value)


def _fits(row: Mapping[str, Any], needs: Collection[str], task: Task) -> bool:
    """Say whether a row has the needed columns of the task, each in its form."""
    features = {name: task.features[name] for name in needs if name in task.features}
    closed = task.labels is not None and "label" in features
    return all(name in row and _has_form(row[name], feature) for name, feature in features.items()) and not (
        closed and row["label"] is not None and row["label"] not in (task.labels or ())
    )


def _has_form(value: Any, feature: Any) -> bool:
    if value is None:
        return True
    if isinstance(feature, Mapping):
        return isinstance(value, Mapping) and all(name in value and _has_form(value[name], feature[name]) for name in feature)
    if isinstance(feature, List):
        return isinstance(value, list) and all(_has_form(each, feature.feature) for each in value)
    return not isinstance(value, Mapping | list)


def read_sources(rows: RowSet) -> dict[str, dict[str, Any]] | None:
    """Return the source rows of a run's counterfactuals, by id; None if the set is not a run's folder."""
    folder = Path(rows) / "data" / "augmented" if isinstance(rows, (str, Path)) else None
    return {str(row["id"]): row for row in read_rows(folder)} if folder and folder.is_dir() else None


def _files(path: Path) -> list[Path]:
    if path.is_file() and path.suffix in _ENDINGS:
        return [path]
    run = path / "data" / "default"
    folder = run if run.is_dir() else path
    files = sorted(file for file in folder.glob("*") if file.suffix in _ENDINGS) if folder.is_dir() else []
    if not files:
        raise FileNotFoundError(
            f"{path} is neither a run's folder, nor a .parquet, .jsonl or .csv file, nor a folder of such files"
        )
    return files


def _name_labels(rows: Any) -> Iterator[dict[str, Any]]:
    """Yield rows with the class names of a published set instead of the class numbers."""
    features = getattr(rows, "features", None) or {}
    classes = {name: feature for name, feature in features.items() if isinstance(feature, ClassLabel)}
    for row in rows:
        yield {**row, **{name: feature.int2str(row[name]) for name, feature in classes.items() if row[name] is not None}}
