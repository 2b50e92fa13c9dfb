"""Map the labels of a user's rows to the task's labels, and back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hfcf.core.names import did_you_mean
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.tables import is_missing
from hfcf.corpora.formats.read import BadRow
from hfcf.tasks.verification import LABELS
from hfcf.text.label_names import label_of, name_beside

Known = Callable[[str], str | None]
"""Returns the task's label for a name, or None."""
_NONE = ("", "-", "-1")
"""Values for rows whose annotators did not agree on a label (SNLI)."""
_FEW = 0.25
"""The share of rows with unknown labels that are their own errors."""
_NUMBER = re.compile(r"-?\d+(\.0+)?")


@dataclass(frozen=True)
class LabelNames:
    """The mapping between a user's labels and the task's.

    Args:
        column: the user's column of labels.
        reading: each label of the user as text → the task's label, or None for a label whose rows are left out.
        writing: each label of the task → the user's value for it.
        any_name: how every other name is read as a label, where labels are written as text.
        open: whether a name that this does not know is a label, too.
    """

    column: str
    reading: Mapping[str, str | None]
    writing: Mapping[str, Any] = field(default_factory=dict)
    any_name: Known | None = None
    open: bool = False

    def read(self, value: Any) -> str:
        """Return the task's label for a user's value."""
        text = label_text(value)
        if text in self.reading:
            label = self.reading[text]
            if label is None:
                raise BadRow(f"the label {text!r} is left out")
            return label
        if text in _NONE:
            missing = value is None or is_missing(value)
            cure = (
                "; if it is the word NA of a CSV, pandas.read_csv(…, keep_default_na=False) keeps it"
                if self.open and missing
                else ""
            )
            raise BadRow(f"there is no label{'' if missing else f' ({value!r})'}{cure}")
        if self.any_name is not None and (label := self.any_name(text) or (text if self.open else None)):
            return label  # later rows of a stream may have new names
        cure = f'map it with labels={{"{text}": …}}, in a recipe labels: {{"{text}": …}}'
        raise BadRow(f"the label {text!r} is unknown; the known labels are {', '.join(map(repr, self.reading))}; {cure}")

    def write(self, label: str, own: Any = None) -> Any:
        """Return the user's value for a label of the task: the source's own value, if it has that label."""
        if own is not None and self.reading.get(text := label_text(own), self.any_name(text) if self.any_name else None) == label:
            return own
        if label not in self.writing:
            if self.open:
                return label
            raise LayoutError(
                f"the column {self.column!r} has no label for {label}, only {', '.join(map(str, self.reading))}",
                {"": {"labels": {**{name: other for name, other in self.reading.items() if other}, "…": label}}},
            )
        return self.writing[label]

    def describe(self) -> str:
        """List the labels that change and their meanings; "" if none changes."""
        pairs = [f"{own} → {label or 'left out'}" for own, label in self.reading.items() if own != label]
        return f" ({', '.join(pairs[:4])}{', …' if len(pairs) > 4 else ''})" if pairs else ""


def read_labels(
    column: str, values: Mapping[Any, int], classes: Sequence[str], given: Any, named: tuple[str, Known] | None = None
) -> LabelNames:
    """Find the meanings of a column's labels: the labels of verification or, where labels are open, any names.

    Args:
        column: the column.
        values: the different values of all rows, a class as its name, and how many rows have each.
        classes: the names of classes, which perhaps no row has.
        given: the user's meanings, or the names of integer labels in order.
        named: what an open label is called, and how it is read.
    """
    what_for, known = named or (f"one of {', '.join(LABELS)}", label_of)
    mapping = _parse(given, known)
    boolean = any(isinstance(value, bool) for value in values) and all(isinstance(value, bool | None) for value in values)
    by_text: dict[str, Any] = {label_text(value): value for value in values}
    # Beside other numbers without names, -1 may be a class: the user says what it is.
    numbers = not classes and not {*by_text} <= {*_NONE} and all(_NUMBER.fullmatch(text) for text in by_text if text)
    by_text = {text: value for text, value in by_text.items() if (numbers and text) or text not in _NONE or text in mapping}
    every = {
        **by_text,
        **{name: name for name in classes if name not in by_text},
        **({"false": False, "true": True} if boolean else {}),
    }
    if classes or boolean:
        if unknown_names := [text for text in mapping if text not in every and text not in _NONE]:
            near = did_you_mean(unknown_names[0], list(every))
            raise ValueError(f"labels= names {unknown_names[0]!r}, but the classes are {', '.join(every)}{near}")
    else:
        kind = next((type(value) for value in values if isinstance(value, int | float) and not is_missing(value)), str)
        absent = {text: kind(text) if _NUMBER.fullmatch(text) else text for text in mapping if text not in every}
        # The first label of a meaning is the one that is written.
        every = {**{text: every[text] for text in mapping if text in every}, **every, **absent}
    reading: dict[str, str | None] = {}
    writing: dict[str, Any] = {}
    unknown: list[str] = []
    for text, value in every.items():
        number = not classes and not boolean and _NUMBER.fullmatch(text) is not None
        label = mapping[text] if text in mapping else None if number else known(text)
        if label is None and text not in mapping:
            if text in by_text:  # a class without rows needs no meaning
                unknown.append(text)
            continue
        reading[text] = label
        if label is not None:
            writing.setdefault(label, value)
    # A few unknown labels are errors of their rows, which are rejected with the reason; a class that many rows have is none.
    rows = Counter(dict.fromkeys(reading, 0))
    for value, count in values.items():
        rows[label_text(value)] += count
    few = min(sum(rows[text] for text in reading), max(1, _FEW * rows.total()))
    if unknown and sum(rows[text] for text in unknown) > few:
        numbers = any(_NUMBER.fullmatch(text) for text in unknown)
        cure = {int(text) if _NUMBER.fullmatch(text) else text: "…" for text in unknown[:12]}
        more = ", …" if len(unknown) > 12 else ""
        what = "which have no names" if numbers else "which are unknown"
        raise LayoutError(
            f"the column {column!r} has the labels {', '.join(unknown[:12])}{more}, {what}: say which is {what_for} (None leaves "
            "its rows out)",
            {"": {"labels": {**cure, **(mapping if given is not None else {})}}},
        )
    closed = named is None and not classes and not boolean
    if closed and all(isinstance(value, str | None) for value in by_text.values()):
        # Counterfactuals may have a label that the rows lack.
        others = {label: [name_beside(own, label) for own in reading] for label in LABELS if label not in writing}
        writing |= {label: next(filter(None, spellings)) for label, spellings in others.items() if any(spellings)}
        if given is None:
            writing = {label: label for label in LABELS} | writing
    texts = not classes and not boolean and all(isinstance(value, str | None) for value in by_text.values())
    is_open = named is not None and not classes and not boolean
    return LabelNames(column, reading, writing, known if is_open or texts else None, is_open)


def _parse(given: Any, known: Known) -> dict[str, str | None]:
    """Return the user's meaning of each label, with labels as text."""
    if given is None:
        return {}
    mapping: dict[str, str | None] = {}
    for own, name in (given if isinstance(given, Mapping) else dict(enumerate(given))).items():
        label = None if name is None else known(str(name))
        if name is not None and label is None:
            raise ValueError(f"labels= maps {own!r} to {name!r}, which must be one of {', '.join(LABELS)}")
        mapping[label_text(own)] = label
    return mapping


def label_text(value: Any) -> str:
    """Write a label as text: a boolean as JSON does, a whole number without ".0" (pandas), what is missing as nothing."""
    if value is None or is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip()
    if text in ("True", "False"):  # as pandas writes them
        return text.lower()
    return text.partition(".")[0] if _NUMBER.fullmatch(text) else text
