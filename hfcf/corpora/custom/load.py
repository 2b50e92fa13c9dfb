"""`hfcf.from_dataset`: convert a user's own rows to rows of the library's columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict, List

from hfcf.core.names import unused_name
from hfcf.core.progress import quiet_few
from hfcf.core.schema import STATUS, TEXT
from hfcf.core.task import Task, get_task, tasks
from hfcf.corpora.base.rows import RowBuilder, content_name, load_status
from hfcf.corpora.base.values import text_group
from hfcf.corpora.custom.cells import name_cell
from hfcf.corpora.custom.columns import LayoutError, find_columns
from hfcf.corpora.custom.layout import Layout, class_name, distinct_columns, find_layout
from hfcf.corpora.custom.tables import RECORD, Table, as_table, first_rows, splits_of
from hfcf.corpora.formats.read import CorpusError, Record
from hfcf.corpora.formats.tokens import EXTRA
from hfcf.text.check import SURROGATE

_EXTRA: Mapping[str, Mapping[str, Any]] = {"relation": EXTRA, "qa": {"aliases": List(TEXT)}}
_ON_ERROR = ("reject", "raise")


def from_dataset(
    ds: Any,
    task: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    labels: Any = None,
    id: str | None = None,
    group: str | None = None,
    title: str | None = None,
    ends: str | None = None,
    corpus: str = "own",
    split: str | None = None,
    on_error: str = "reject",
) -> Any:
    """Convert rows in your own columns to rows that every system reads; `hfcf.to_dataset` converts back.

    Missing settings are guessed if the guess is safe, and one line on stderr lists the guesses:

    - claims: `claim` with `evidence` or `context`; `hypothesis` with `premise`; `sentence2` with `sentence1`. The evidence is a
      text, a list of texts, of [title, text] or of {title, text}.
    - relations: a `text` or `sentence` with `<e1>…</e1>` and `<e2>…</e2>`. Or `tokens` or `token`, with `head` and `tail` (`h` and
      `t` of OpenNRE), or with TACRED's `subj_start`, `subj_end`, `obj_start`, `obj_end`.
    - questions: `question` with `answers` or `answer`, and `context` or `passage`: SQuAD's columns.
    - single texts: `text`, `sentence` or `review` with `label`, if the columns fit none of the forms above.
    - labels: SUPPORTS, REFUTES, NOT ENOUGH INFO in the spellings of corpora, entailment, contradiction, neutral, true,
      false; for relations and single texts any name.

    Args:
        ds: a `Dataset`, a `DatasetDict`, an `IterableDataset`, a DataFrame, a list of dicts, or the path of a file.
        task: "verification", "relation", "qa" or "classification"; by default the task that the columns fit.
        columns: our field → your column: {"claim": "statement", "evidence": "text"}. Several columns make a list of pieces
            ("evidence": ["fact1", "fact2"]) or an entity's start, end and type ("head": ["begin", "finish"]).
        labels: your label → our label, a name of it, or None to leave its rows out. Or the names of integer classes in order.
        id: the column with the ids. By default a known name of which most values differ, else ids are hashes of the rows'
            content, whatever their order. Later rows with equal content get "#2" and so on. A repeated id is unreadable.
        group: the column with the names of groups; by default rows of equal content are a group.
        title: the column with the title of the evidence, for each of its texts that has none of its own.
        ends: whether the last positions of entities are "inclusive" or "exclusive", if the rows do not show it.
        corpus: the name in the column `corpus`.
        split: the name in the column `split`; by default the split of the dataset, else "train".
        on_error: "reject" keeps an unreadable row, and its `status` says why; "raise" raises an error.

    Returns:
        Rows with the columns of the task, of the same kind as `ds`: a `Dataset`, a `DatasetDict` or an `IterableDataset`. Your
        other columns stay in `ds`. In a stream, repeated ids are not detected. A set without rows returns a set without rows.

    Raises:
        LayoutError: columns or labels can't be guessed. The message lists them, and the line to type.
        CorpusError: no row can be read, or, with "raise", a row can't be read.

    >>> nli = [{"premise": "Rome is the capital of Italy.", "hypothesis": "Rome is in Italy.", "label": "entailment"}]
    >>> row = from_dataset(nli)[0]
    >>> row["claim"], row["evidence"], row["label"]
    ('Rome is in Italy.', [{'title': '', 'text': 'Rome is the capital of Italy.'}], 'SUPPORTS')
    """
    if on_error not in _ON_ERROR:
        raise ValueError(f"on_error must be {' or '.join(map(repr, _ON_ERROR))}, got {on_error!r}")
    settings = {"columns": columns, "labels": labels, "id": id, "group": group, "title": title, "ends": ends}
    parts = {name: as_table(part) for name, part in (splits_of(ds) or {"": ds}).items()}
    if not parts:
        raise ValueError("the DatasetDict has no splits")
    if all(value is None for value in settings.values()) and all(is_canonical(part, task) for part in parts.values()):
        named = "" if (corpus, split) == ("own", None) else ", and keep their corpus and split"
        say(f"the rows already have hfcf's columns{named}")
        return ds if splits_of(ds) else parts[""]
    try:
        layout = describe_tables(parts, task, settings)
    except LayoutError as error:
        raise error.with_arguments({"task": task}) from None
    rows = read_tables(parts, ReadRows(layout, corpus, split or "", on_error == "reject"))
    if splits_of(ds) is None:
        return rows[""]
    return (IterableDatasetDict if any(isinstance(part, IterableDataset) for part in rows.values()) else DatasetDict)(rows)


def describe_tables(parts: Mapping[str, Table], task: str | None, settings: Mapping[str, Any]) -> Layout:
    """Find the layout of the tables of splits, and print it; see `from_dataset` for the settings."""
    heads = filled_heads(parts)
    try:
        layout = (
            find_layout(heads, task, **settings) if heads else Layout(_task_without_rows(parts, task, settings.get("columns")), {})
        )
    except LayoutError as error:
        raise error.with_arguments(settings) from None
    say(layout.describe() if heads else f"there are no rows; the columns are the columns of {layout.task}")
    if "id" not in layout.columns:
        for name in distinct_columns(list(heads.values()), [*layout.own, RECORD]):
            say(f"{name} differs in all rows: if it is an id, give id={name!r}, or in a recipe columns: {{id: {name}, …}}")
    return layout


def read_tables(parts: Mapping[str, Table], reader: ReadRows) -> dict[str, Table]:
    """Read the tables of splits as rows of ours, and print which rows can't be read."""
    rows = {}
    for name, part in parts.items():
        split = reader.split or name or (str(part.split).partition("[")[0] if part.split else "train")
        rows[name] = read_quietly(part, replace(reader, split=split))
        _report(part, rows[name], split, alone=len(parts) == 1)
    return rows


def _report(table: Table, rows: Table, split: str, *, alone: bool) -> None:
    """Print how many rows of a split are read, and how many are rejected: together they are the rows of its files."""
    if not isinstance(rows, Dataset):
        return
    rejected = [i for i, status in enumerate(rows["status"]) if status] if "status" in rows.column_names else []
    if RECORD in table.column_names:
        assert len(rows) == len(table)
        say(f"the split {split!r} has {len(table):,} rows: {len(rows) - len(rejected):,} are read, {len(rejected):,} rejected")
    if not rejected:
        return
    first = f"row {rejected[0] + 1}: {rows[rejected[0]]['status']['reason']}"
    if alone and len(rejected) == len(rows) and RECORD not in table.column_names:
        raise CorpusError(f"all {len(rows):,} rows are unreadable; {first}")
    say(f"{len(rejected):,} of {len(rows):,} rows of the split {split!r} can't be read and are rejected; {first}")


def read_one(rows: list[dict[str, Any]], task: str) -> Dataset:
    """Read one row in known columns; print nothing, and raise an error if it can't be read."""
    table = as_table(rows)
    try:
        return read_quietly(table, ReadRows(find_layout({"": table}, task), "own", "train", False))
    except LayoutError:
        raise
    except CorpusError as error:
        raise CorpusError(str(error).partition("; on_error=")[0]) from None


def filled_heads(parts: Mapping[str, Table]) -> dict[str, Dataset]:
    """Return the rows in which a layout is found, of the splits that have rows."""
    return {name: head for name, part in parts.items() if len(head := first_rows(part))}


def _task_without_rows(parts: Mapping[str, Table], task: str | None, columns: Mapping[str, Any] | None) -> str:
    """Return the task of a table without rows: the named task, or the task that its columns fit."""
    if task is not None:
        return get_task(task).name
    names = [name for part in parts.values() for name in part.column_names or () if name != RECORD]
    if not names:
        raise CorpusError('there are no rows and no columns: task="verification" (or "relation", "qa") says which columns to give')
    return find_columns(list(dict.fromkeys(names)), [], None, columns)[0].task


def is_canonical(table: Table, task: str | None = None) -> bool:
    """Say whether rows have all columns of a task, with our types."""
    own = table.features or {}
    every = [known.features for name, known in tasks().items() if task in (None, name)]
    return any(all(name in own and own[name] == feature for name, feature in features.items()) for features in every)


@dataclass(frozen=True)
class ReadRows:
    """Read a batch of a user's rows; for `Dataset.map` with indices.

    Args:
        layout: the layout of the rows.
        corpus: the name in the column `corpus`.
        split: the name in the column `split`.
        reject: whether an unreadable row gets a `status`; else it raises an error.
        numbered: whether ids are the numbers of rows, and a column of ids names their groups.
        classes: the names of the classes of each column that has classes, in this split.
        version: raise it when equal rows are read differently, because `map` does not hash the code that this calls.
    """

    layout: Layout
    corpus: str
    split: str
    reject: bool
    numbered: bool = False
    classes: Mapping[str, ClassLabel] = field(default_factory=dict)
    version: str = "5"

    @property
    def features(self) -> Features:
        """The columns of the rows."""
        status = {"status": STATUS} if self.reject else {}
        return Features({**get_task(self.layout.task).features, **_EXTRA.get(self.layout.task, {}), **status})

    def __call__(self, batch: Mapping[str, list[Any]], places: list[int]) -> dict[str, list[Any]]:
        task = get_task(self.layout.task)
        check = task.validate if self.reject else None  # else the stages check what they work on
        builder = RowBuilder(task, _EXTRA.get(task.name, ()), self.layout.fill, check=check, reject=self.reject)
        columns = {name: values for name, values in batch.items() if name != RECORD}
        for name, feature in self.classes.items():
            columns[name] = [class_name(value, feature) for value in columns[name]]
        sources = batch.get(RECORD) or [{"place": f"row {place + 1}", "unreadable": None} for place in places]
        records = [
            Record("row", place + 1, {name: columns[name][i] for name in columns}, sources[i]["unreadable"])
            for i, place in enumerate(places)
        ]
        rows = [self._row(record, sources[i]["place"], builder, task) for i, record in enumerate(records)]
        return {name: [row[name] for row in rows] for name in self.features}

    def _row(self, record: Record, place: str, builder: RowBuilder, task: Task) -> dict[str, Any]:
        columns, own = self.layout.columns, record.value
        row, why = builder.read(record)
        # A table holds half of a surrogate pair escaped; `validate` sees it.
        broken = [what for what, text in task.named_texts(row) if isinstance(text, str) and SURROGATE.search(text)]
        why = why or (
            f"{broken[0]} holds half of a surrogate pair: the file's encoding is broken: save it as UTF-8" if broken else None
        )
        if why and not self.reject:
            name = f" (id {own[id_column]!r})" if (id_column := str(columns.get("id", ""))) and own.get(id_column) else ""
            raise CorpusError(f'{place}{name}: {why}; on_error="reject" keeps such rows, with the reason in the column status')
        row = builder.stored(row, why)
        content = [*own.values(), record.unreadable] if why else [row.get(name) for name in (*task.columns, "label")]
        row["id"] = text_group("row", json.dumps(content, ensure_ascii=False, default=str))
        given = {name: name_cell(own[str(columns[name])]) for name in ("id", "group") if name in columns}
        row["id"] = given.get("id") or row["id"]
        row["group_id"] = given.get("group") or row["group_id"] or (row["id"] if why else content_name(row, task))
        if self.numbered:
            row |= {"id": f"row-{record.number}", "group_id": given.get("group") or given.get("id") or row["group_id"]}
        return {**row, "corpus": self.corpus, "split": self.split}


def read_quietly(table: Table, reader: ReadRows) -> Table:
    """Return rows of our columns, in the order of the user's."""
    records = [RECORD] if RECORD in (table.column_names or ()) else []
    # A stream of Python's rows may lack some columns in some rows: `map` fills them, `select_columns` does not.
    known = isinstance(table, Dataset) or table.features is not None
    own = table.select_columns([*reader.layout.own, *records]) if known else table
    classes = {name: feature for name, feature in (own.features or {}).items() if isinstance(feature, ClassLabel)}
    reader = replace(reader, classes=classes)
    kwargs: dict[str, Any] = {
        "batched": True,
        "with_indices": True,
        "remove_columns": [*reader.layout.own, *records],
        "features": reader.features,
    }
    if isinstance(own, IterableDataset):
        return own.map(reader, **kwargs).select_columns(list(reader.features))
    if not len(own):
        return Dataset.from_dict({name: [] for name in reader.features}, features=reader.features)
    with quiet_few(len(own)):
        return _unrepeated(own.map(reader, **kwargs, desc="from_dataset"), reader)


def _unrepeated(rows: Dataset, reader: ReadRows) -> Dataset:
    """Add numbers to repeated ids; a row whose own id repeats is rejected, as in files."""
    ids = list(rows["id"])
    if len(set(ids)) == len(ids):
        return rows
    places: dict[str, int] = {}
    statuses = list(rows["status"]) if reader.reject else []
    own, used = "id" in reader.layout.columns and not reader.numbered, set(ids)
    for i, name in enumerate(ids):
        if name not in places:
            places[name] = i
            continue
        if own:
            why = f"the id {name!r} was used before, at row {places[name] + 1}"
            if not reader.reject:
                raise CorpusError(f"row {i + 1}: {why}")
            statuses[i] = statuses[i] or load_status(why)
        ids[i] = unused_name(name, used)
        used.add(ids[i])
        places[ids[i]] = i
    changes = {"id": ids, **({"status": statuses} if reader.reject else {})}
    order = rows.column_names
    for name, values in changes.items():
        rows = rows.remove_columns(name).add_column(name, values, feature=reader.features[name])
    return rows.select_columns(order)


def say(text: str) -> None:
    """Print how rows are read."""
    print(f"hfcf.from_dataset: {text}", file=sys.stderr)
