"""`hfcf.to_dataset`: write counterfactuals in the columns, forms and label names of their source rows."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, IterableDataset, List, Value, concatenate_datasets

from hfcf.core.columns import with_label_names
from hfcf.core.names import number_repeats
from hfcf.core.pairs import check_source
from hfcf.core.progress import quiet_few
from hfcf.core.schema import TEXT
from hfcf.core.task import Task, task_of
from hfcf.corpora.base import BadRow
from hfcf.corpora.custom.cells import parse_cell
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.labels import label_text
from hfcf.corpora.custom.layout import Layout, class_name, distinct_columns, find_layout
from hfcf.corpora.custom.load import ReadRows, filled_heads, is_canonical, read_quietly
from hfcf.corpora.custom.tables import RECORD, Table, as_table, cell, is_frame, is_missing, splits_of

_SENTENCES = ("text", "sentence")
"""Columns that repeat the sentence of the tokens."""
_EXPLAINS = re.compile(r"(explanation|rationale|justification|highlight|marked)", re.IGNORECASE)
"""Columns about why a row has its label, or about words of it."""
_LABELS = re.compile(r"label|annotat", re.IGNORECASE)
"""Columns about the label."""
_SHOWN = 7
"""Rows of each label that show that a column follows from the label, whatever its name."""
_DESCRIBES = re.compile(r"_(binary_)?(parse|tokens?|words?|pos|tags?|ner|lemmas?|spans?|len(gth)?|embeddings?|html)", re.IGNORECASE)
"""The end of the name of a column that describes the words of the column before it."""


def to_dataset(
    cf: Any,
    *,
    like: Any,
    columns: Mapping[str, Any] | None = None,
    labels: Any = None,
    id: str | None = None,
    group: str | None = None,
    title: str | None = None,
    ends: str | None = None,
) -> Any:
    """Write counterfactuals in your own columns, evidence form and label names, to join them with your rows.

    Args:
        cf: counterfactuals, from `hfcf.expand`; may have several splits if `like` has them. A split of its own is written like the
            split that its column `split` names.
        like: the rows that you gave to `hfcf.from_dataset`.
        columns: your `columns` of `hfcf.from_dataset`. A setting that you did not give there is guessed again, here and below.
        labels: your `labels` of that call.
        id: your `id` of that call.
        group: your `group` of that call.
        title: your `title` of that call.
        ends: your `ends` of that call.

    Returns:
        A row for each counterfactual, in their order and with the features of `like`. It is a DataFrame if `like` is a DataFrame, a
        list if `like` is a list, a `DatasetDict` if `cf` has several splits, else a `Dataset` (also for a stream). Texts, entities,
        answers and label are the counterfactual's. So is the id, if `like` has a column of ids. Numbers continue after the largest
        of all splits, and an id that is used gets "#2". A label that did not change is your own value of it. Other columns are the
        source row's, but columns that describe its words (parses, tags parallel to its tokens) or explain its label are null, and a
        column that every label has one value of (`label_text`) has that of the new label. Lines on stderr name these columns, and
        columns that differ in all rows of `like` without being read as ids.

    Raises:
        ValueError: a counterfactual's source is not in `like`, or has a different text there.
        LayoutError: `like` has no name for a counterfactual's label.

    >>> import hfcf
    >>> own = [{"premise": "Rome is old.", "hypothesis": "Rome is not new.", "label": "entailment"}]
    >>> cf = hfcf.expand(hfcf.RACE.preset("offline")(hfcf.from_dataset(own)))  # doctest: +SKIP
    >>> hfcf.to_dataset(cf, like=own)  # doctest: +SKIP
    [{'premise': 'Rome is old.', 'hypothesis': 'Rome is new.', 'label': 'contradiction'}]
    """
    settings = {"columns": columns, "labels": labels, "id": id, "group": group, "title": title, "ends": ends}
    given = {
        split: part if isinstance(part, Dataset) else as_table(part) for split, part in (splits_of(like) or {"": like}).items()
    }
    tables = {split: as_table(part) for split, part in given.items()}
    several = splits_of(cf)
    if several and not set(several) <= set(tables):
        raise ValueError(f"the counterfactuals have the splits {', '.join(several)}, but like= does not: give its DatasetDict")
    parts = {split: _with_label_names(part) for split, part in (several or {"": cf}).items()}
    # All splits, as in `from_dataset`: a single split may not show which column has the ids, or whether ends are inclusive.
    every = list(tables.values())
    with _name_call(settings):
        layout = _layout(next(iter(parts.values())), tables, settings)
        ids = iter(_new_ids(layout, every, [name for part in parts.values() for name in part["id"]]))
        written = {
            split: _to_table(part, {split: tables[split]} if several else tables, layout, list(islice(ids, len(part))))
            for split, part in parts.items()
        }
    if any(map(len, parts.values())):
        _name_repeated(tables, layout, task_of(next(iter(parts.values())).features))
    written = {split: _without_record(_with_types(part, given.get(split))) for split, part in written.items()}
    if several:
        return DatasetDict(written)
    if is_frame(like):
        return _as_frame(_own_values(written[""], {str(name): like[name].tolist() for name in like}), like)
    if isinstance(like, list | tuple):
        return _own_values(written[""], {name: [row.get(name) for row in like] for name in written[""].column_names})
    return written[""]


def _own_values(table: Dataset, own: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows with the values of a user's rows in memory where a column of several types was read as a column of texts."""
    rows: list[dict[str, Any]] = table.to_list()
    for name, values in own.items():
        if table.features[name] != TEXT:
            continue
        texts = {value for value in values if isinstance(value, str)}
        others = {cell(value): value for value in values if not isinstance(value, str | None) and not is_missing(value)}
        for row in rows if others else ():
            parsed = parse_cell(row[name]) if isinstance(row[name], str) and row[name] not in texts else row[name]
            row[name] = others.get(row[name], parsed if isinstance(parsed, list | dict) else row[name])
    return rows


def _with_label_names(cf: Any) -> Dataset:
    """Return counterfactuals as a dataset whose labels are texts."""
    if "source_id" not in (cf.features or ()):
        raise ValueError("there is no column 'source_id': give counterfactuals, cf = hfcf.expand(ds)")
    if isinstance(cf, IterableDataset):
        cf = Dataset.from_list(list(cf), features=cf.features)
    return with_label_names(cf)  # `hfcf run` publishes classes


def _layout(cf: Dataset, tables: Mapping[str, Table], settings: Mapping[str, Any]) -> Layout | None:
    """Return the layout of the user's rows; None for rows in our columns."""
    name = task_of(cf.features).name
    if all(value is None for value in settings.values()) and all(is_canonical(table, name) for table in tables.values()):
        return None
    return find_layout(heads, name, **settings) if (heads := filled_heads(tables)) else Layout(name, {})


def _with_types(table: Dataset, given: Dataset | None) -> Dataset:
    """Return rows with the types of the user's dataset, such as `large_string`."""
    if not isinstance(given, Dataset) or table.features == given.features:
        return table
    with quiet_few(len(table)):
        return table.cast(given.features)


def _to_table(cf: Dataset, tables: Mapping[str, Table], layout: Layout | None, ids: list[Any]) -> Dataset:
    """Write the counterfactuals of the rows of some tables."""
    task = task_of(cf.features)
    theirs, sources = _sources(tables, layout, cf)
    new = list(cf)
    _check_texts(task, sources, new)
    written = _written(task, layout, theirs, sources, new)
    if (column := _id_column(layout)) is not None:
        written[column] = ids
    own_label = layout.labels.column if layout and layout.labels else "label"
    label_changed = (
        [own["label"] != row["label"] for own, row in zip(sources, new, strict=True)] if "label" in task.features else []
    )
    moved = _of_label(list(tables.values()), theirs, own_label, written, label_changed) if any(label_changed) else {}
    stale = {name: [None] * len(new) for name in _stale(theirs, sources, {**written, **moved})}
    if stale and new:
        _say(f"set to null, because they describe the words of the sources, or explain their labels: {', '.join(stale)}")
    if moved:
        _say(f"changed with the label: {', '.join(moved)}")
    return _with_columns(theirs, {**written, **moved, **stale})


def _of_label(
    tables: Sequence[Table], theirs: Dataset, label: str, written: Mapping[str, list[Any]], changed: Sequence[bool]
) -> dict[str, list[Any]]:
    """Return the columns whose value follows from the label, with the value of the new label; null where no row shows it."""
    if label not in theirs.column_names:
        return {}
    columns: dict[str, Mapping[str, Any]] = {}
    of_label = re.compile(rf"(?<![A-Za-z]){re.escape(label)}(?![a-z])|(?i:{_LABELS.pattern})")
    counts = Counter(label_text(own) for table in tables for row in table.select_columns(label) for own in row.values())
    shown = min(counts.values(), default=0) >= _SHOWN
    for name in theirs.column_names:
        if name in written or not (shown or of_label.search(name)):
            continue
        value_of: dict[str, Any] = {}
        pairs = ((row[label], row[name]) for table in tables for row in table.select_columns([label, name]))
        follows = all(value_of.setdefault(label_text(own), value) == value for own, value in pairs)
        if follows and any(value != next(iter(value_of.values())) for value in value_of.values()):
            columns[name] = value_of
        elif not follows and of_label.search(name):
            columns[name] = {}
    return {
        name: [
            value_of.get(label_text(new)) if other else old
            for new, old, other in zip(written[label], theirs[name], changed, strict=True)
        ]
        for name, value_of in columns.items()
    }


@contextmanager
def _name_call(settings: Mapping[str, Any]) -> Iterator[None]:
    """Make an error about columns or labels name the call of the user."""
    try:
        yield
    except LayoutError as error:
        raise error.with_arguments(settings, "hfcf.to_dataset(cf, like=ds") from error


def _without_record(table: Dataset) -> Dataset:
    """Leave out what the reader of a file noted: it is no column of the user's."""
    return table.remove_columns(RECORD) if RECORD in table.column_names else table


def _as_frame(rows: list[dict[str, Any]], like: Any) -> Any:
    """Return rows as a DataFrame with the types of `like`."""
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(map(str, like.columns))).set_axis(list(like.columns), axis="columns")
    # A value outside the categories, such as a label that only counterfactuals have, would become NaN.
    dtypes = {
        name: pd.CategoricalDtype(pd.api.types.union_categoricals([like[name], frame[name].astype("category")]).categories)
        if isinstance(dtype, pd.CategoricalDtype) and not frame[name].dropna().isin(dtype.categories).all()
        else dtype
        for name, dtype in like.dtypes.items()
    }
    # A number or truth that a new row lacks needs a type with nulls: without one, False would stand for what is unknown.
    for name, dtype in dtypes.items():
        if getattr(dtype, "kind", "") in "biu" and isinstance(dtype, np.dtype) and frame[name].isna().any():
            dtypes[name] = pd.BooleanDtype() if dtype.kind == "b" else pd.Int64Dtype()
    return frame.astype(dtypes)


def _sources(tables: Mapping[str, Table], layout: Layout | None, cf: Dataset) -> tuple[Dataset, list[dict[str, Any]]]:
    """Return the user's row of each counterfactual's source, and our row of it; two splits may have the same ids."""
    ids = list(cf["source_id"])
    needed = set(ids)
    # With the names that `from_dataset` had, `map` finds the rows that it stored.
    corpus, split = (str(next(iter(cf[column]), "")) for column in ("corpus", "split"))
    by_id: dict[tuple[str, str], tuple[Any, dict[str, Any]]] = {}
    parts: list[Dataset] = []
    size = 0
    for name, table in tables.items():
        rows = table if layout is None else read_quietly(table, ReadRows(layout, corpus, name or split, True))
        part, keep = _select(table, rows, needed)
        for i, row in enumerate(keep, size):
            for key in ((name, row["id"]), ("", row["id"])):
                by_id.setdefault(key, (i, row))
        size += len(keep)
        parts.append(part)
    if absent := [source_id for source_id in ids if ("", source_id) not in by_id]:
        raise ValueError(
            f"{len(absent):,} counterfactuals have sources that like= does not have, first {absent[0]!r}: give the rows, and "
            "columns=, labels= and id=, that hfcf.from_dataset had"
        )
    every = concatenate_datasets(parts) if len(parts) > 1 else parts[0]
    found = [by_id.get((of, name)) or by_id["", name] for of, name in zip(cf["split"], ids, strict=True)]
    return every.select([i for i, _ in found]), [row for _, row in found]


def _select(table: Table, rows: Table, needed: set[str]) -> tuple[Dataset, list[dict[str, Any]]]:
    """Return the user's rows with the needed ids, and our rows made from them; a stream is read in one pass."""
    if isinstance(table, Dataset):
        places = [i for i, source_id in enumerate(rows["id"]) if source_id in needed]
        return table.select(places), list(rows.select(places))
    pairs = [(own, row) for own, row in zip(table, rows, strict=True) if row["id"] in needed]
    features = table.features or Dataset.from_list([own for own, _ in pairs[:1]]).features
    return Dataset.from_list([own for own, _ in pairs], features=features), [row for _, row in pairs]


def _check_texts(task: Task, sources: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> None:
    """Raise an error unless each counterfactual's edits lead back to its source's text: else columns were read differently."""
    for source, row in zip(sources, new, strict=True):
        try:
            check_source(task, source, row)
        except ValueError as error:
            raise ValueError(
                f"the counterfactual {row['id']!r} was not made from the text of its source in like=: give columns=, labels= "
                "and id= as hfcf.from_dataset had them"
            ) from error


def _written(
    task: Task, layout: Layout | None, theirs: Dataset, sources: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """Return the values of the columns of texts and labels that differ from the sources'."""
    if layout is None:
        names = [name for name in task.features if name not in ("id", "group_id", "corpus", "split")]
        return {name: [row[name] for row in new] for name in names}
    columns = theirs.select_columns(layout.own)
    rows = [layout.write(own, source, row) for own, source, row in zip(columns, sources, new, strict=True)]
    written = {name: [row.get(name, own[name]) for row, own in zip(rows, columns, strict=True)] for name in _names(rows)}
    if layout.labels:
        column = layout.labels.column
        feature = theirs.features[column]
        names = [
            layout.labels.write(row["label"], class_name(own[column], feature) if row["label"] == source["label"] else None)
            for row, source, own in zip(new, sources, columns, strict=True)
        ]
        written[column] = [_class_of(name, feature, column) for name in names]
    return written


def _class_of(name: Any, feature: Any, column: str) -> Any:
    """Return the number of a class, of a column that has classes."""
    if not isinstance(feature, ClassLabel):
        return name
    if name not in feature.names:
        raise LayoutError(
            f"the column {column!r} has no class {name!r}, only {', '.join(feature.names)}", {"": {"labels": {"…": name}}}
        )
    return feature.names.index(name)


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _id_column(layout: Layout | None) -> str | None:
    """Return the user's column of ids; None if there is no such column."""
    if layout is None:
        return "id"
    return str(layout.columns["id"]) if "id" in layout.columns else None


def _new_ids(layout: Layout | None, tables: Sequence[Table], names: list[str]) -> list[Any]:
    """Return the ids of new rows, none of which is in any split: their own, or the numbers after the largest."""
    column = _id_column(layout)
    if column is None or not names:
        return names
    used = [row[column] for table in tables for row in table.select_columns(column)]
    if numbers := [int(value) for value in used if isinstance(value, int) or (isinstance(value, float) and value.is_integer())]:
        return list(range(max(numbers) + 1, max(numbers) + 1 + len(names)))
    return number_repeats([*used, *names])[len(used) :]


def _name_repeated(tables: Mapping[str, Table], layout: Layout | None, task: Task) -> None:
    """Name the columns that identify the user's rows, and that new rows share with their sources."""
    read = layout.own if layout else list(task.features)
    for name in distinct_columns(list(filled_heads(tables).values()), read):
        cure = "change or drop it there" if _id_column(layout) else f"give id={name!r} to hfcf.from_dataset and hfcf.to_dataset"
        _say(f"{name} differs in all your rows, but new rows have their source's: if it is an id, {cure}")


def _say(text: str) -> None:
    print(f"hfcf.to_dataset: {text}", file=sys.stderr)


def _stale(theirs: Dataset, sources: Sequence[Mapping[str, Any]], written: Mapping[str, Any]) -> list[str]:
    """List the columns that describe the sources' words, or explain their labels: parses, lists parallel to tokens."""
    others = [name for name in theirs.column_names if name not in written]
    stale = [
        name for name in others
        if _EXPLAINS.search(name) or any(name.startswith(own) and _DESCRIBES.fullmatch(name[len(own) :]) for own in written)
    ]  # fmt: skip
    if sources and "tokens" in sources[0]:
        sizes = [len(source["tokens"]) for source in sources]
        kinds = (List, Value)  # in a file a list is a text
        lists = {name: list(map(_list_of, theirs[name])) for name in others if isinstance(theirs.features[name], kinds)}
        stale += [name for name in others if name in _SENTENCES]
        stale += [
            name
            for name, own in lists.items()
            if any(own) and all(value is None or len(value) == n for value, n in zip(own, sizes, strict=True))
        ]
    return stale


def _list_of(value: Any) -> list[Any] | None:
    """Return the list that a cell holds, as it is or as text; of another value [], which is parallel to no tokens."""
    try:
        value = parse_cell(value, numbers=True)
    except BadRow:
        return []
    return value if isinstance(value, list | None) else []


def _with_columns(theirs: Dataset, written: Mapping[str, list[Any]]) -> Dataset:
    """Return the rows with new values in some columns, and the same features."""
    order, features = theirs.column_names, theirs.features
    with quiet_few(len(theirs)):
        table = theirs.flatten_indices() if len(theirs) else theirs
    for name, values in written.items():
        if name in order and name in features:
            if getattr(features[name], "dtype", "") == "string":  # as in files, whose tables hold texts
                values = list(map(cell, values))
            table = table.remove_columns(name).add_column(name, values, feature=features[name])
    return table.select_columns(order)
