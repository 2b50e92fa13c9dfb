"""What methods made, read for raters: the folder of a run, plain Parquet or JSON lines, or rows at hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Given = str | Path | Iterable[Mapping[str, Any]]
"""A `Dataset`, rows, a file (`.parquet`, `.jsonl`), or a folder: of a run, or of such files."""


def rows_of(given: Given) -> Iterator[dict[str, Any]]:
    """The rows of a set, labels as text.

    Of a run's folder these are its counterfactuals.

    Args:
        given: see `Given`.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a line is no JSON object, or the file is of another kind.

    >>> list(rows_of([{"id": "1"}]))
    [{'id': '1'}]
    """
    if not isinstance(given, (str, Path)):
        yield from map(_texts(given), given)
        return
    for file in _files(Path(given)):
        if file.suffix == ".parquet":
            import pyarrow.parquet as pq
            from datasets import Dataset

            # Not through the library's cache, which may know an older file of that name.
            ds = Dataset(pq.read_table(file))
            yield from map(_texts(ds), ds)
        else:
            yield from _lines(file)


def originals(given: Given) -> dict[str, dict[str, Any]] | None:
    """The rows that a run's counterfactuals were made of, by id; None where the set does not bring them along.

    >>> originals([{"id": "1"}]) is None
    True
    """
    folder = Path(given) / "data" / "augmented" if isinstance(given, (str, Path)) else None
    return {str(row["id"]): row for row in rows_of(folder)} if folder and folder.is_dir() else None


def _files(path: Path) -> list[Path]:
    if path.is_file() and path.suffix in (".parquet", ".jsonl"):
        return [path]
    run = path / "data" / "default"
    folder = run if run.is_dir() else path
    found = sorted(file for file in folder.glob("*") if file.suffix in (".parquet", ".jsonl")) if folder.is_dir() else []
    if not found:
        raise FileNotFoundError(f"{path}: there is no folder of a run, nor a .parquet or .jsonl file, or a folder of such files")
    return found


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{file}, line {number}: no JSON: {error}") from error
            if not isinstance(row, dict):
                raise ValueError(f"{file}, line {number}: no JSON object")
            yield row


def _texts(given: Any) -> Any:
    """What makes a published set's classes texts again."""
    features = getattr(given, "features", None) or {}
    classes = {name: feature for name, feature in features.items() if hasattr(feature, "int2str")}

    def texts(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, **{name: feature.int2str(row[name]) for name, feature in classes.items() if row[name] is not None}}

    return texts
