"""Find the corpus, columns and labels of a user's file in its first rows, for a recipe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.frames import HEAD, as_table
from hfcf.corpora.custom.schema import FORMS, Layout, find_layout
from hfcf.corpora.formats.read import CorpusError, csv_rows, json_lines, parquet_rows
from hfcf.text.label_names import label_of

_FORMS = {".csv": "csv", ".jsonl": "jsonl", ".jsonlines": "jsonl", ".gz": "jsonl", ".parquet": "parquet"}
_OWN = {"relation": "relations", "qa": "questions", "structures": "structures", "classification": "texts"}
"""The corpora of a user's own rows, by task; corpora of claims have the name of the file format."""


def describe_file(
    data: str | Path, tasks: Sequence[str], given: Mapping[str, Any]
) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Return the task of a file's rows, the recipe's keys that name them, and the first rows; without `tasks`, of any task."""
    path = Path(data).expanduser()
    if not path.is_file():
        raise CorpusError(f"{data}: {'it is a folder; give a file of it' if path.is_dir() else 'there is no such file'}")
    if (form := _FORMS.get(path.suffix)) is None:
        raise CorpusError(f"{data}: give a file of JSON lines, CSV or Parquet (.jsonl, .csv, .parquet)")
    rows = _head(path, form)
    tasks = tasks or (("structures",) if any("structure" in row for row in rows) else tuple(FORMS))
    layout = _layout(rows, tasks, given)
    task = layout.task if layout else "verification" if _plainly_ours(rows, tasks) else tasks[0]
    return task, _source(layout, form, task, str(data)), rows


def _head(path: Path, form: str) -> list[dict[str, Any]]:
    """Read the first rows, with all columns; unreadable lines are left out."""
    if form == "parquet":
        import pyarrow.parquet as pq

        records = parquet_rows(path, pq.read_schema(path).names)
    else:
        records = csv_rows(path) if form == "csv" else json_lines(path)
    rows = [dict(record.value) for record in islice(records, HEAD) if not record.unreadable]
    if not rows:
        raise CorpusError(f"{path} has no row that can be read as {form}")
    return rows


def _layout(rows: list[dict[str, Any]], tasks: Collection[str], given: Mapping[str, Any]) -> Layout | None:
    """Find the layout of rows; None if the corpus of the task reads its own forms."""
    if not set(tasks) & set(FORMS):
        return None
    try:
        table = as_table(rows)
    except ValueError:  # values of different types: evidence in several forms, which the corpus reads
        return None
    try:
        said = {key: given[key] for key in ("columns", "labels") if key in given}
        return find_layout([table], next(iter(tasks)) if len(tasks) == 1 else None, **said)
    except LayoutError:
        if _plainly_ours(rows, tasks):
            return None
        raise


def _plainly_ours(rows: list[dict[str, Any]], tasks: Collection[str]) -> bool:
    return "verification" in tasks and all({"claim", "evidence"} <= set(row) for row in rows[:20])


def _source(layout: Layout | None, form: str, task: str, data: str) -> dict[str, Any]:
    """Return the keys of the recipe that name the rows: the corpus for files of our columns, else also `columns`."""
    corpus = _OWN.get(task, form)
    source: dict[str, Any] = {"corpus": corpus, "data_files": data}
    if layout is None:
        return source
    own = {field: list(column) if isinstance(column, tuple) else column for field, column in layout.columns.items()}
    ours = {"label": ("label", "gold_label"), "group": ("group_id",)} if task == "verification" else {"group": ("group_id",)}
    renamed = {field: column for field, column in own.items() if column not in ours.get(field, (field,))}
    labels = {_key(name): label for name, label in (layout.labels.reading if layout.labels else {}).items() if name != label}
    if not renamed and not labels:
        return source
    # Files of claims have one column for each field, and leave no row out.
    several = any(isinstance(column, list) for column in own.values())
    records = task == "verification" and not several and None not in labels.values()
    if not renamed and records:
        return {**source, "options": {"labels": {name: label_of(str(label)) or label for name, label in labels.items()}}}
    names = {**({"columns": own} if renamed else {}), **({"labels": labels} if labels else {})}
    if records:
        return {**source, **names, **({"columns": _of_records(own)} if renamed else {})}
    return {"corpus": {"path": "json" if form == "jsonl" else form, "data_files": data}, **names}


def _of_records(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {"group_id" if field == "group" else field: column for field, column in columns.items()}


def _key(name: str) -> Any:
    return int(name) if name.isdecimal() and str(int(name)) == name else name
