"""The layout of a user's rows, for reading and writing them: columns, labels, and how places are counted."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from datasets import ClassLabel, Dataset, Value

from hfcf.corpora import claims, questions, relations, texts
from hfcf.corpora.custom.columns import Column, Columns, LayoutError, find_columns
from hfcf.corpora.custom.labels import OPEN, LabelNames, read_labels

FORMS: Mapping[str, ModuleType] = {"verification": claims, "relation": relations, "qa": questions, "classification": texts}
"""The module that reads and writes the rows of each task."""
ENDS = ("exclusive", "inclusive")
_PEEK = 100
_GUESSED = ("id", "group", "title")
_ID_TYPES = ("string", "large_string", "int64", "int32", "int16", "uint32", "uint64")
_ID_NAME = re.compile(r"([A-Za-z]|uu|gu)?(id|ID)|.*[^A-Za-z](id|ID)|.*[a-z](Id|ID)")
_FEW = 20
"""With fewer rows, the values of any column may differ by chance."""


@dataclass(frozen=True)
class Layout:
    """The layout of a user's rows.

    Args:
        task: the name of their task.
        columns: the user's column of each field.
        labels: the meanings of the labels; None for a task without labels.
        ends: 1 if the last position of an entity is inclusive, else 0.
    """

    task: str
    columns: Columns
    labels: LabelNames | None = None
    ends: int = 0

    @property
    def form(self) -> ModuleType:
        """The module that reads and writes its rows."""
        return FORMS[self.task]

    def fill(self, row: dict[str, Any], own: Mapping[str, Any]) -> None:
        """Write the user's values into a row of ours."""
        self.form.read_columns(row, own, self.columns, self.ends)
        if self.labels:
            row["label"] = self.labels.read(own[self.labels.column])

    @property
    def own(self) -> list[str]:
        """The user's columns that are read."""
        return list(dict.fromkeys(name for column in self.columns.values() for name in _names(column)))

    def describe(self) -> str:
        """Return one line that says which column is read as which field."""
        parts = []
        for field, column in self.columns.items():
            what = "group_id" if field == "group" else field
            meaning = self.labels.describe() if field == "label" and self.labels else ""
            parts.append(f"{what} ← {' + '.join(_names(column))}{meaning}")
        if "id" not in self.columns:
            parts.append("id ← the row's content")
        if any(not isinstance(self.columns.get(name), str) for name in ("head", "tail") if name in self.columns):
            parts.append(f"ends of entities are {ENDS[self.ends]}")
        return ", ".join(parts)


def find_layout(
    parts: Sequence[Dataset],
    task: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    labels: Any = None,
    id: str | None = None,
    group: str | None = None,
    title: str | None = None,
    ends: str | None = None,
) -> Layout:
    """Find the layout of rows; see `hfcf.from_dataset` for the arguments."""
    if ends not in (None, *ENDS):
        raise ValueError(f"ends must be {' or '.join(map(repr, ENDS))}, got {ends!r}")
    short = {"id": id, "group": group, "title": title}
    given = {**(columns or {}), **{name: column for name, column in short.items() if column is not None}}
    given = {("group" if field == "group_id" else field): column for field, column in given.items()}
    first = parts[0]
    head = [row for part in parts for row in part.select_columns(_texts(part)).select(range(min(len(part), _PEEK)))]
    layouts, chosen = find_columns(first.column_names, head, task, given)
    found: dict[str, Column] = dict(chosen)
    for name in _GUESSED:
        if name in found and name not in given and not _fits(name, str(found[name]), found, parts):
            del found[name]
    layout = Layout(layouts.task, found)
    if layouts.labelled:
        column = str(found["label"])
        if not isinstance(first.features[column], Value | ClassLabel):
            raise ValueError(f"the column {column!r} has the type {first.features[column]}; a row must have one label")
        values = list(dict.fromkeys(value for part in parts for value in part.unique(column)))
        names = read_labels(column, first.features[column], values, labels, OPEN.get(layouts.task))
        layout = replace(layout, labels=names)
    elif labels is not None:
        raise ValueError(f"labels= is not allowed: {layouts.title} have no labels")
    return replace(layout, ends=_ends(layout, parts, ends))


def distinct_columns(parts: Sequence[Dataset], read: Collection[str]) -> list[str]:
    """List the columns that nobody reads and whose values, numbers or single words, differ in all rows: they may be ids.

    With few rows, only columns with names of ids are listed.
    """
    few = sum(map(len, parts)) < _FEW
    names = [name for name in (parts[0].column_names if parts else []) if name not in read]
    return [name for name in names if (not few or _ID_NAME.fullmatch(name)) and _is_distinct(name, parts)]


def _is_distinct(column: str, parts: Sequence[Dataset]) -> bool:
    if not all(column in part.column_names and _dtype(part, column) in _ID_TYPES for part in parts):
        return False
    if any(isinstance(part.features[column], ClassLabel) for part in parts):
        return False
    values = [value for part in parts for value in part[column]]
    return len(set(values)) == len(values) > 1 and not any(len(str(value).split()) != 1 or value is None for value in values)


def _fits(name: str, column: str, found: Columns, parts: Sequence[Dataset]) -> bool:
    """Say whether a guessed column fits its field."""
    if name == "title":  # for evidence of one text, or for a passage
        evidence = found.get("evidence")
        return evidence is None or (
            isinstance(evidence, str) and _dtype(parts[0], evidence) == _dtype(parts[0], column) == "string"
        )
    if _dtype(parts[0], column) not in _ID_TYPES:
        return False
    values = [part[column][:] for part in parts]
    if any(value is None for column_values in values for value in column_values):
        return False
    return name == "group" or all(len(set(column_values)) == len(column_values) for column_values in values)


def _ends(layout: Layout, parts: Sequence[Dataset], ends: str | None) -> int:
    places = [layout.columns[name] for name in ("head", "tail") if name in layout.columns]
    if ends is not None:
        if not places:
            raise ValueError("ends= is not allowed: these rows have no columns with places of entities")
        return ENDS.index(ends)
    if not any(isinstance(place, tuple) for place in places) or "tokens" not in layout.columns:
        return 0
    rows = [row for part in parts for row in part.select_columns(layout.own)]
    inclusive = relations.inclusive_ends(rows, layout.columns)
    if inclusive is None:
        start, end = _names(places[0])[:2]
        cures = {
            f"{end} is the place of the entity's last word (TACRED's own files)": {"ends": "inclusive"},
            f"{end} is the place after it": {"ends": "exclusive"},
        }
        raise LayoutError(f"the rows do not show whether {start} to {end} includes the last word", cures)
    return int(inclusive)


def _names(column: Column) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def _texts(ds: Dataset) -> list[str]:
    return [name for name in ds.column_names if _dtype(ds, name) == "string"]


def _dtype(ds: Dataset, column: str) -> str | None:
    return getattr(ds.features[column], "dtype", None)
