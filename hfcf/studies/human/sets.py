"""Read the rows of a method: the folder of a run, plain Parquet or JSON lines, or rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hfcf.corpora.formats.read import json_lines

RowSet = str | Path | Iterable[Mapping[str, Any]]
"""A `Dataset`, rows, a file (`.parquet`, `.jsonl`), or a folder: of a run, or of such files."""


def read_rows(rows: RowSet) -> Iterator[dict[str, Any]]:
    """Yield the rows of a set, labels as text; of a run's folder its counterfactuals."""
    if not isinstance(rows, (str, Path)):
        yield from _name_labels(rows)
        return
    for file in _files(Path(rows)):
        if file.suffix == ".parquet":
            import pyarrow.parquet as pq
            from datasets import Dataset

            # The cache of `datasets` may hold an older file of that name.
            yield from _name_labels(Dataset(pq.read_table(file)))
        else:
            for record in json_lines(file):
                if record.unreadable:
                    raise ValueError(f"{file}, {record.unreadable}: write a JSON object on each line")
                yield record.value


def read_sources(rows: RowSet) -> dict[str, dict[str, Any]] | None:
    """Return the source rows of a run's counterfactuals, by id; None if the set is not a run's folder."""
    folder = Path(rows) / "data" / "augmented" if isinstance(rows, (str, Path)) else None
    return {str(row["id"]): row for row in read_rows(folder)} if folder and folder.is_dir() else None


def _files(path: Path) -> list[Path]:
    if path.is_file() and path.suffix in (".parquet", ".jsonl"):
        return [path]
    run = path / "data" / "default"
    folder = run if run.is_dir() else path
    files = sorted(file for file in folder.glob("*") if file.suffix in (".parquet", ".jsonl")) if folder.is_dir() else []
    if not files:
        raise FileNotFoundError(f"{path} is neither a run's folder, nor a .parquet or .jsonl file, nor a folder of such files")
    return files


def _name_labels(rows: Any) -> Iterator[dict[str, Any]]:
    """Yield rows with the class names of a published set instead of the class numbers."""
    features = getattr(rows, "features", None) or {}
    classes = {name: feature for name, feature in features.items() if hasattr(feature, "int2str")}
    for row in rows:
        yield {**row, **{name: feature.int2str(row[name]) for name, feature in classes.items() if row[name] is not None}}
