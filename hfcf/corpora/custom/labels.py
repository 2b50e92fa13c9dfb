"""Map the labels of a user's rows to the task's labels, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datasets import ClassLabel, Value

from hfcf.core.names import did_you_mean
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.formats.read import BadRow
from hfcf.tasks.relation import OTHER
from hfcf.tasks.verification import LABELS
from hfcf.text.label_names import label_of, name_beside
from hfcf.text.normalise import normalise

Known = Callable[[str], str | None]
"""Returns the task's label for a name, or None."""
_NO_RELATION = {"norelation", "na", "other"}
_NONE = ("", "-", "-1")
"""Values for rows whose annotators did not agree on a label (SNLI)."""


def relation_of(name: str) -> str:
    """Return a relation's name; "Other" for the names that mean no relation, which systems do not change."""
    return OTHER if normalise(name) in _NO_RELATION else name


OPEN: Mapping[str, tuple[str, Known]] = {
    "relation": ("the name of a relation", relation_of),
    "classification": ("the name of a label", str),
}
"""What the labels of tasks with open labels are called, and how they are read."""


@dataclass(frozen=True)
class LabelNames:
    """The mapping between a user's labels and the task's.

    Args:
        column: the user's column of labels.
        names: the names of the classes, if the column is a `ClassLabel`.
        reading: each label of the user as text → the task's label, or None for a label whose rows are left out.
        writing: each label of the task → the user's value for it.
        any_name: how every other name is read as a label, where labels are open and written as text.
    """

    column: str
    names: tuple[str, ...]
    reading: Mapping[str, str | None]
    writing: Mapping[str, Any] = field(default_factory=dict)
    any_name: Known | None = None

    def read(self, value: Any) -> str:
        """Return the task's label for a user's value."""
        text = _text(value, self.names)
        if text in self.reading:
            label = self.reading[text]
            if label is None:
                raise BadRow(f"the label {text!r} is left out")
            return label
        if value is None or text in _NONE:
            raise BadRow(f"there is no label{'' if value is None else f' ({value!r})'}")
        if self.any_name is not None:  # later rows of a stream may have new names
            return self.any_name(text) or text
        raise BadRow(f"the label {text!r} is unknown; the known labels are {', '.join(map(repr, self.reading))}")

    def write(self, label: str) -> Any:
        """Return the user's value for a label of the task."""
        if label not in self.writing:
            if self.any_name:
                return label
            raise LayoutError(
                f"the column {self.column!r} has no label for {label}, only {', '.join(map(str, self.reading))}",
                {"": {"labels": {**{own: other for own, other in self.reading.items() if other}, "…": label}}},
            )
        return self.writing[label]

    def describe(self) -> str:
        """List the labels that change and their meanings; "" if none changes."""
        pairs = [f"{own} → {label or 'left out'}" for own, label in self.reading.items() if own != label]
        return f" ({', '.join(pairs[:4])}{', …' if len(pairs) > 4 else ''})" if pairs else ""


def read_labels(column: str, feature: Any, values: Sequence[Any], given: Any, named: tuple[str, Known] | None = None) -> LabelNames:
    """Find the meanings of a column's labels: the labels of verification or, for a task of `OPEN`, any names."""
    what_for, known = named or (f"one of {', '.join(LABELS)}", label_of)
    names = tuple(feature.names) if isinstance(feature, ClassLabel) else ()
    mapping = _parse(given, known, names)
    boolean = isinstance(feature, Value) and feature.dtype == "bool"
    every: list[Any] = [*range(len(names))] if names else [False, True] if boolean else _own_first(mapping, values, feature)
    if names or boolean:
        _check_named(mapping, every, names)
    numbers = not names and not boolean and any(isinstance(value, int | float) for value in values)
    reading: dict[str, str | None] = {}
    writing: dict[str, Any] = {}
    unknown: dict[Any, str] = {}
    for value in every:
        text = _text(value, names)
        if value is None or (text in _NONE and text not in mapping):
            continue
        key = next((key for key in (_keys(value, names) if names or boolean else (text,)) if key in mapping), None)
        label = mapping[key] if key is not None else None if numbers else known(text)
        if label is None and key is None:
            if value in values:  # a class without rows needs no meaning
                unknown[value if numbers else text] = "…"
            continue
        reading[text] = label
        if label is not None:
            writing.setdefault(label, value)
    if unknown:
        present = ", ".join(str(value) for value in list(unknown)[:12]) + (", …" if len(unknown) > 12 else "")
        what = "which have no names" if numbers else "which are unknown"
        cure = dict.fromkeys(list(unknown)[:12], "…") | {own: label for own, label in mapping.items() if given is not None}
        raise LayoutError(
            f"the column {column!r} has the labels {present}, {what}: say which is {what_for} (None leaves its rows out)",
            {"": {"labels": cure}},
        )
    if named is None and not names and not boolean and not numbers:
        # Counterfactuals may have a label that the rows lack.
        others = {label: [name_beside(own, label) for own in reading] for label in LABELS if label not in writing}
        writing |= {label: next(filter(None, spellings)) for label, spellings in others.items() if any(spellings)}
    return LabelNames(column, names, reading, writing, known if named and not names and not boolean and not numbers else None)


def _own_first(mapping: Mapping[str, Any], values: Sequence[Any], feature: Any) -> list[Any]:
    """List the labels as values of the column: the user's that occur, then other values, then the user's that do not occur.

    `LabelNames.write` writes the first label of a meaning.
    """
    by_text = {_text(value, ()): value for value in values}
    number = isinstance(feature, Value) and "int" in feature.dtype
    named = [by_text.get(text, int(text) if number and text.lstrip("-").isdigit() else text) for text in mapping]
    there = [value for value in named if _text(value, ()) in by_text]
    absent = [value for value in named if _text(value, ()) not in by_text]
    return [*there, *(value for text, value in by_text.items() if text not in mapping), *absent]


def _check_named(mapping: Mapping[str, Any], every: Sequence[Any], names: Sequence[str]) -> None:
    """Raise an error for a label that is not a class: it would have no effect."""
    known = {key for value in every for key in _keys(value, names)}
    if unknown := [text for text in mapping if text not in known and text not in _NONE]:
        own = [_text(value, names) for value in every]
        raise ValueError(f"labels= names {unknown[0]!r}, but the classes are {', '.join(own)}{did_you_mean(unknown[0], own)}")


def _parse(given: Any, known: Known, names: Sequence[str]) -> dict[str, str | None]:
    """Return the user's meaning of each label, with labels as text."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = dict(enumerate(given))
    mapping: dict[str, str | None] = {}
    for own, name in given.items():
        label = None if name is None else known(str(name))
        if name is not None and label is None:
            raise ValueError(f"labels= maps {own!r} to {name!r}, which must be one of {', '.join(LABELS)}")
        text = str(own).lower() if isinstance(own, bool) else str(own)
        mapping[text] = label
    return mapping


def _keys(value: Any, names: Sequence[str]) -> tuple[str, str]:
    """Return the spellings of a class: its name and its number, or a boolean as in JSON and as in Python."""
    return _text(value, names), str(value)


def _text(value: Any, names: Sequence[str]) -> str:
    """Write a label as text: a class as its name, a boolean as JSON does, a whole number without ".0" (pandas)."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return str(value)
