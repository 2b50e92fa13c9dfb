"""The layout of a user's rows, for reading and writing them: columns, labels, and how places are counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasets import ClassLabel, Dataset, Value

from hfcf.corpora.custom.cells import Column, Columns
from hfcf.corpora.custom.columns import LayoutError, find_columns, layouts_of
from hfcf.corpora.custom.labels import LabelNames, label_text, read_labels
from hfcf.corpora.custom.relations import inclusive_ends
from hfcf.corpora.custom.tables import is_missing, own_columns
from hfcf.corpora.formats.read import BadRow, CorpusError

ENDS = ("exclusive", "inclusive")
_PEEK = 100
_GUESSED = ("id", "group", "title")
_ID_TYPES = ("string", "int64", "int32", "int16", "uint32", "uint64")
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

    def fill(self, row: dict[str, Any], own: Mapping[str, Any]) -> None:
        """Write the user's values into a row of ours; raise `BadRow` for a value that can't be read."""
        problem = None
        if self.labels:
            try:
                row["label"] = self.labels.read(own[self.labels.column])
            except BadRow as error:
                problem = error
        try:
            layouts_of(self.task).read(row, own, self.columns, self.ends)
        except BadRow as error:
            problem = problem or error
        if problem:
            raise problem

    def write(self, own: Mapping[str, Any], source: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        """Return the user's columns of texts with those of a counterfactual, in the form of the source's."""
        if (write := layouts_of(self.task).write) is None:
            raise ValueError(f"{self.task} rows are not written in columns of your own: keep the counterfactuals as they are")
        return write(own, source, new, self.columns, self.ends)

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

    def keys(self) -> dict[str, Any]:
        """Return the keys of a recipe that say the same: columns that are not named as fields, and labels that are not known."""
        columns = {
            "group_id" if field == "group" else field: list(column) if isinstance(column, tuple) else column
            for field, column in self.columns.items()
        }
        columns = columns if any(field != column for field, column in columns.items()) else {}
        labels = (
            {int(name) if name.isdecimal() else name: label for name, label in self.labels.reading.items() if name != label}
            if self.labels
            else {}
        )
        return {**({"columns": columns} if columns else {}), **({"labels": labels} if labels else {})}


def find_layout(
    parts: Mapping[str, Dataset],
    task: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    labels: Any = None,
    id: str | None = None,
    group: str | None = None,
    title: str | None = None,
    ends: str | None = None,
) -> Layout:
    """Find the layout of the rows of all splits, by the split's name; see `hfcf.from_dataset` for the arguments."""
    if ends not in (None, *ENDS):
        raise ValueError(f"ends must be {' or '.join(map(repr, ENDS))}, got {ends!r}")
    short = {"id": id, "group": group, "title": title}
    given = {**(columns or {}), **{name: column for name, column in short.items() if column is not None}}
    given = {("group" if field == "group_id" else field): column for field, column in given.items()}
    tables = list(parts.values())
    first = tables[0]
    names = own_columns(first)
    head = [row for part in tables for row in part.select_columns(_texts(part)).select(range(min(len(part), _PEEK)))]
    layouts, chosen = find_columns(names, head, task, given)
    found: dict[str, Column] = dict(chosen)
    for name in _GUESSED:
        if name in found and name not in given and not _fits(name, str(found[name]), found, tables):
            if name == "id" and "group" not in found and all(_holds_names(part, str(found[name])) for part in tables):
                found["group"] = found[name]  # an id that several rows share says which rows belong together
            del found[name]
    layout = Layout(layouts.task, found)
    for split, part in parts.items():
        if absent := next((name for name in layout.own if name not in part.column_names), None):
            raise CorpusError(
                f"the split {split!r} has no column {absent!r}, which other splits have; it has {', '.join(own_columns(part))}: "
                "add it, or leave the split out"
            )
    if layouts.labelled:
        layout = replace(layout, labels=_labels(str(found["label"]), parts, labels, layouts.task))
    elif labels is not None:
        raise ValueError(f"labels= is not allowed: {layouts.title} have no labels")
    return replace(layout, ends=_ends(layout, tables, ends))


def _labels(column: str, parts: Mapping[str, Dataset], labels: Any, task: str) -> LabelNames:
    """Find the meanings of the labels; each split has its own classes."""
    values = Counter[Any]()
    classes: dict[str, None] = {}
    for split, part in parts.items():
        feature = part.features[column]
        if not isinstance(feature, Value | ClassLabel):
            raise CorpusError(f"the column {column!r} of the split {split!r} has the type {feature}; a row must have one label")
        values.update(class_name(value, feature) for value in part[column])
        if isinstance(feature, ClassLabel):
            classes |= dict.fromkeys(feature.names)
    if isinstance(labels, Sequence) and not isinstance(labels, str):
        _check_list(column, labels, values, classes)
        labels = dict(zip(classes, labels, strict=True)) if classes else labels
    numbered = [tuple(part.features[column].names) for part in parts.values() if isinstance(part.features[column], ClassLabel)]
    if isinstance(labels, Mapping) and numbered and any(isinstance(own, int) and not isinstance(own, bool) for own in labels):
        if len(set(numbered)) > 1:
            raise ValueError(f"labels= numbers the classes of {column!r}, whose order differs between splits: give their names")
        names = numbered[0]
        labels = {names[own] if isinstance(own, int) and 0 <= own < len(names) else own: label for own, label in labels.items()}
    return read_labels(column, values, list(classes), labels, layouts_of(task).open_labels)


def _check_list(column: str, labels: Sequence[Any], values: Mapping[Any, int], classes: Mapping[str, None]) -> None:
    """Check that a list of meanings, the first for 0, fits a column of labels."""
    if classes and len(labels) != len(classes):
        raise ValueError(
            f"labels= lists {len(labels)} names, but {column!r} has {len(classes)} classes, {', '.join(classes)}: name each, None "
            "for a class that is left out"
        )
    texts = [label_text(value) for value in values] if not classes else []
    if named := [text for text in texts if text and not text.lstrip("+-").isdecimal()]:
        raise ValueError(
            f"labels= is a list, for the numbers 0, 1, …, but {column!r} has the texts {', '.join(sorted(named)[:3])}: give a "
            "mapping, {text: label}"
        )


def class_name(value: Any, feature: Any) -> Any:
    """Return the name of a class; any other value as it is."""
    return feature.names[value] if isinstance(feature, ClassLabel) and value is not None and value >= 0 else value


def distinct_columns(parts: Sequence[Dataset], read: Collection[str]) -> list[str]:
    """List the columns that nobody reads and whose values, numbers or single words, differ in all rows: they may be ids.

    With few rows, only columns with names of ids are listed.
    """
    few = sum(map(len, parts)) < _FEW
    names = [name for name in (parts[0].column_names if parts else []) if name not in read]
    return [name for name in names if (not few or _ID_NAME.fullmatch(name)) and _is_distinct(name, parts)]


def _is_distinct(column: str, parts: Sequence[Dataset]) -> bool:
    if not all(column in part.column_names and _holds_names(part, column) for part in parts):
        return False
    if any(isinstance(part.features[column], ClassLabel) for part in parts):
        return False
    values = [value for part in parts for value in part[column]]
    return len(set(values)) == len(values) > 1 and not any(len(str(value).split()) != 1 or value is None for value in values)


def _fits(name: str, column: str, found: Columns, parts: Sequence[Dataset]) -> bool:
    """Say whether a guessed column fits its field in all splits."""
    if not all(column in part.column_names for part in parts):
        return False
    if name == "title":  # for evidence of one text, or for a passage
        evidence = found.get("evidence")
        return evidence is None or (isinstance(evidence, str) and _dtype(parts[0], evidence) == "string")
    if not all(_holds_names(part, column) for part in parts):
        return False
    if name == "group":
        return True
    values = [part[column][:] for part in parts]
    return all(len({value for value in each if value is not None and str(value).strip()}) > _SHARED * len(each) for each in values)


_SHARED = 0.5
"""The share of different values above which a column is an id. Its repetitions are errors, and a row without one gets another."""


def _ends(layout: Layout, parts: Sequence[Dataset], ends: str | None) -> int:
    places = [layout.columns[name] for name in ("head", "tail") if name in layout.columns]
    if ends is not None:
        if not places:
            raise ValueError("ends= is not allowed: these rows have no columns with places of entities")
        return ENDS.index(ends)
    if not places:
        return 0
    rows = [row for part in parts for row in part.select_columns(layout.own)]
    inclusive = inclusive_ends(rows, layout.columns)
    if inclusive is None:
        start, end = _names(places[0])[:2]
        unit, files = ("word", " (TACRED's own files)") if "tokens" in layout.columns else ("character", "")
        cures = {
            f"{end} is the place of the entity's last {unit}{files}": {"ends": "inclusive"},
            f"{end} is the place after it": {"ends": "exclusive"},
        }
        raise LayoutError(f"the rows do not show whether {start} to {end} includes the entity's last {unit}", cures)
    return int(inclusive)


def _names(column: Column) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def _texts(ds: Dataset) -> list[str]:
    return [name for name in ds.column_names if _dtype(ds, name) == "string"]


def _holds_names(part: Dataset, column: str) -> bool:
    """Say whether a column holds texts or whole numbers, which pandas makes floats where one is missing."""
    if _dtype(part, column) in ("float32", "float64"):
        return all(value is None or is_missing(value) or value.is_integer() for value in part[column])
    return _dtype(part, column) in _ID_TYPES


def _dtype(ds: Dataset, column: str) -> str | None:
    return getattr(ds.features[column], "dtype", None)
