"""Compare the published rows of two runs; floats may differ in their last digits, as they do with batch and processor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasets import Dataset

TOLERANCE = 1e-4
WAYS: dict[str, Callable[[Dataset, Any], Any]] = {
    "row by row": lambda ds, stage: ds.map(stage),
    "two processes": lambda ds, stage: ds.map(stage, batched=True, batch_size=2, num_proc=2),
    "stream": lambda ds, stage: ds.to_iterable_dataset().map(stage, batched=True, batch_size=3),
    "backwards": lambda ds, stage: reversed(list(ds.select(range(len(ds) - 1, -1, -1)).map(stage, batched=True))),
}
"""Ways to map a stage, all of which must give the rows of one batched map."""


def published_rows(out: Path) -> dict[str, list[dict[str, Any]]]:
    """Read the rows of a run's folder by "configuration/split"; JSON texts are parsed."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(out.rglob("*.parquet")):
        read = pq.ParquetFile(path).read().to_pylist()
        rows.setdefault(f"{path.parent.name}/{path.name.split('-')[0]}", []).extend(map(_parsed, read))
    return rows


def assert_same_rows(one: Path, other: Path) -> None:
    """Fail unless two folders hold the same files with the same rows, floats within `TOLERANCE`."""
    first, second = published_rows(one), published_rows(other)
    assert list(first) == list(second)
    for name, rows in first.items():
        assert len(rows) == len(second[name]), name
        for i, pair in enumerate(zip(rows, second[name], strict=True)):
            assert_near(*pair, where=f"{name}[{i}]")


def assert_near(one: Any, other: Any, where: str = "value") -> None:
    """Fail unless two values are equal, floats anywhere inside within `TOLERANCE`.

    >>> assert_near({"a": [0.80636]}, {"a": [0.80637]})
    >>> assert_near({"a": [0.80636]}, {"a": [0.8]})
    Traceback (most recent call last):
    AssertionError: value.a[0]: 0.80636 and 0.8
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        assert set(one) == set(other), f"{where}: the keys {sorted(one)} and {sorted(other)}"
        for key in one:
            assert_near(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other), f"{where}: {len(one)} and {len(other)} items"
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_near(left, right, f"{where}[{i}]")
    elif isinstance(one, float) and isinstance(other, float):
        assert abs(one - other) <= TOLERANCE, f"{where}: {one} and {other}"
    else:
        assert one == other, f"{where}: {one!r} and {other!r}"


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """Parse the JSON texts of the configuration `rejected`."""
    texts = [key for key in ("source", "candidate") if isinstance(row.get(key), str)]
    return {**row, **{key: json.loads(row[key]) for key in texts}}
