"""Build rows of a task from records: fill them, say what is wrong with them, and make them storable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import datasets

from hfcf.core.schema import LOAD
from hfcf.core.task import Task
from hfcf.corpora.base.values import as_text, text_group
from hfcf.corpora.formats.read import BadRow, Record
from hfcf.text.check import kind, shorten

Row = dict[str, Any]


class RowBuilder:
    """Build rows from the records of a file or a dataset.

    Args:
        task: the task of the rows.
        extra: the columns besides the canonical columns.
        fill: writes a record's values into a row; raises `BadRow` for a value that can't be read. Earlier values stay in the row.
        check: says why a row that was read can't be worked on, or None.
        reject: whether rows have the column `status`, which says why a row is rejected.
    """

    def __init__(
        self,
        task: Task,
        extra: Iterable[str],
        fill: Callable[[Row, dict[str, Any]], None],
        *,
        check: Callable[[Row], str | None] | None,
        reject: bool,
    ) -> None:
        features = task.features  # a property that makes them again
        self._texts = {name: features[name] for name in (*task.columns, "label") if name in features}
        self._empty = {**task.empty_row, "id": None, "group_id": None, **dict.fromkeys(extra)}
        self._task, self._fill, self._check, self._reject = task, fill, check, reject

    def read(self, record: Record) -> tuple[Row, str | None]:
        """Return the row of a record, and why it can't be used, or None."""
        row = deepcopy(self._empty)
        if record.unreadable:
            return row, record.unreadable
        try:
            self._fill(row, record.value)
        except BadRow as error:
            return row, str(error)
        return row, unreadable(row, self._task) or (self._check(row) if self._check else None)

    def stored(self, row: Row, why: str | None) -> Row:
        """Return a row with texts that Arrow can store, and its status."""
        status = {"status": load_status(why)} if self._reject else {}
        return {**row, **{name: _storable(row[name], feature) for name, feature in self._texts.items()}, **status}


def unreadable(row: Mapping[str, Any], task: Task) -> str | None:
    """Return why a row can't be stored as it is, or None."""
    for what, text in task.named_texts(row):
        if not isinstance(text, str):
            return f"{what} is {kind(text)}{'' if text is None else ', not text'}"
        if as_text(text) != text:
            return f"{what} holds half of a surrogate pair: the file's encoding is broken: save it as UTF-8"
    return None


def load_status(why: str | None) -> dict[str, Any] | None:
    """Return the status of a row that is rejected for this reason, or None without a reason."""
    return {"accepted": False, "stage": LOAD, "reason": shorten(str(as_text(why)))} if why else None


def content_name(row: Mapping[str, Any], task: Task) -> str:
    """Name the texts of a storable row; equal texts have the same name in every file."""
    return text_group("row", json.dumps([row[name] for name in task.columns], ensure_ascii=False))


def _storable(value: Any, feature: Any) -> Any:
    """Apply `as_text` to each text of a column's value."""
    if isinstance(feature, dict):
        return value if value is None else {key: _storable(value.get(key), part) for key, part in feature.items()}
    if isinstance(feature, datasets.Value):
        return as_text(value) if feature.dtype == "string" else value
    return value if value is None else [_storable(item, feature.feature) for item in value]
