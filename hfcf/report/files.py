"""What the folder of a run holds: `run.json`, and the Parquet files that its card lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from hfcf.core import schema
from hfcf.core.paths import inside
from hfcf.core.safe_yaml import front_matter, yaml_problem
from hfcf.core.task import tasks
from hfcf.hub.contents import data_files
from hfcf.hub.folder import as_list


def read_run(folder: Path) -> dict[str, Any] | None:
    """Read `run.json`; None where there is none.

    Raises:
        ValueError: it is not a JSON object.
    """
    path = folder / "run.json"
    if not path.is_file():
        return None
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}; run the recipe again to write it anew") from error
    if not isinstance(run, dict) or "funnel" not in run:
        raise ValueError(f"{path} was not written by hfcf run: it has no funnel")
    return run


def files(folder: Path) -> dict[str, list[Path]]:
    """List each configuration's Parquet files, as the card does: a folder can also hold an older run's.

    Raises:
        FileNotFoundError: there is no card, or a file that it lists is missing.
        ValueError: the card can't be read, or lists a file outside of the folder.
    """
    card = folder / "README.md"
    if not card.is_file():
        raise FileNotFoundError(f"{folder} has no README.md, whose front matter lists a run's files: give the folder of hfcf run")
    try:
        listed = data_files(front_matter(card.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise ValueError(f"{card}: its front matter is not YAML: {yaml_problem(error)}") from error
    paths_of = {}
    for config, splits in listed.items():
        paths_of[config] = [inside(folder, path) for paths in splits.values() for path in as_list(paths)]
    for path in (path for paths in paths_of.values() for path in paths):
        if not path.is_file():
            raise FileNotFoundError(f"{card} lists {path.relative_to(folder)}, which is not there: run the recipe again")
    return paths_of


def count(paths: Sequence[Path]) -> int:
    """Count the rows of Parquet files."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in paths)


def read(paths: Sequence[Path], take: int | None = None, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield rows of Parquet files, a batch of them in memory at a time; labels that are classes as their names."""
    import pyarrow.parquet as pq
    from datasets import Features

    total, i = count(paths), 0
    take = total if take is None else min(take, total)
    for path in paths:
        with pq.ParquetFile(path) as file:
            label = Features.from_arrow_schema(file.schema_arrow).get("label")
            names = getattr(label, "names", None)
            present = columns and [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=2000, columns=present):
                chosen = [n for n in range(batch.num_rows) if (i + n + 1) * take // total > (i + n) * take // total]
                i += batch.num_rows
                for row in (batch.take(chosen) if len(chosen) < batch.num_rows else batch).to_pylist():
                    if names and row.get("label") is not None:
                        row["label"] = names[row["label"]] if row["label"] >= 0 else None
                    yield row


def numbers(paths: Sequence[Path]) -> list[str]:
    """List what metrics wrote of each row: columns of numbers; a number inside a structure is "column.field"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def number(kind: pa.DataType) -> bool:
        return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)

    canonical = {column for columns in (*(task.features for task in tasks().values()), schema.PROVENANCE) for column in columns}
    names = []
    for field in pq.read_schema(paths[0]) if paths else []:
        if field.name in canonical:
            continue
        if pa.types.is_struct(field.type):
            names += [f"{field.name}.{inner.name}" for inner in field.type if number(inner.type)]
        elif number(field.type):
            names.append(field.name)
    return names
