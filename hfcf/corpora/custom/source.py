"""A user's own rows as a corpus: files, arguments of `load_dataset`, a folder of `save_to_disk`; and the rows of commands."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from datasets import (
    ClassLabel,
    Dataset,
    DatasetDict,
    List,
    ReadInstruction,
    concatenate_datasets,
    load_dataset,
    load_from_disk,
)
from datasets.exceptions import DatasetGenerationError

from hfcf.core.names import did_you_mean
from hfcf.core.recipe import is_saved, resolve_folder
from hfcf.core.task import Task, get_task, nearest_task
from hfcf.corpora.base import Corpus, CorpusError, CorpusInfo
from hfcf.corpora.base.files import assign_splits, check_place
from hfcf.corpora.base.info import parse_split
from hfcf.corpora.custom import OWN
from hfcf.corpora.custom.columns import LayoutError, layouts_of
from hfcf.corpora.custom.layout import Layout, class_name
from hfcf.corpora.custom.load import ReadRows, describe_tables, from_dataset, read_tables
from hfcf.corpora.custom.tables import FORMATS, find_files, format_of, read_files, read_records, split_of

_REFUSED = ("streaming", "trust_remote_code", "token")
"""Arguments of `load_dataset` that are refused: runs need all rows, remote code is never run, and recipes are published."""
_FILES = ("path", "data_files", "data_dir", "split")
"""Arguments of `load_dataset` with which files are read here, where a stray quote loses no row."""
_BUILDERS = ("json", "csv", "parquet")
_SETTINGS = ("columns", "labels", "id", "group", "title", "ends")
FILE_OPTIONS = ("task", *_SETTINGS)
"""What commands take by `--set` for a user's file: the arguments of `from_dataset`."""


class OwnRows(Corpus):
    """The front matter and options of a user's own rows, which `from_dataset` reads."""

    FILES: ClassVar = ()

    INFO = CorpusInfo(name="own", title="Rows of a user's own", release="yours")
    OPTIONS: ClassVar = {
        "task": "verification, relation, qa, classification or structures, if the columns fit several",
        "columns": "our field → your column",
        "labels": "your label → ours",
        "id": "the column with the ids",
        "group": "the column that says which rows belong together",
        "title": "the column with the title of the evidence, for each of its texts that has none of its own",
        "ends": "inclusive or exclusive last places of entities",
        "numbered": "true: ids are the numbers of rows, and a column of ids names their groups",
    }


_FORMATS = ("jsonl", "json", "csv", "parquet")


def own_builder(corpus: Any) -> type[OwnRows]:
    """Return the front matter of a user's own rows."""
    name = corpus_name(corpus)
    if name in OWN:
        task = OWN[name]
        layout = "`data_files=`, or `{train,dev,test}.*` in a folder, its `data/` or `data/default/`"
        fields = ", ".join(f"`{column}`" for column in [*get_task(task).columns, "label"] if column in get_task(task).features)
        notes = f"JSON lines, JSON, CSV, TSV or Parquet, also `.gz`; {fields}, or other columns as `from_dataset` reads them"
        title = f"{layouts_of(task).heading} from a user's own files"
        info = replace(OwnRows.INFO, name=name, title=title, task=task, layout=layout, notes=notes)
    else:
        path = corpus.get("path") if isinstance(corpus, Mapping) else corpus
        hub = name == path and "/" in name
        info = replace(OwnRows.INFO, name=name, title=name, hub_id=name if hub else None)
    return type("OwnRows", (OwnRows,), {"INFO": info, "__module__": __name__})


def corpus_name(corpus: Any) -> str:
    """Return the name of a corpus in cards and tables."""
    if isinstance(corpus, Mapping):
        path = corpus_name(str(corpus.get("path")))
        return f"{path}/{corpus['name']}" if corpus.get("name") else path
    if "/" not in corpus:
        return str(corpus)
    # Cards are published, so they must not contain local paths.
    return Path(corpus).resolve().name if Path(corpus).expanduser().exists() or corpus.startswith(("/", ".", "~")) else corpus


def load_own(corpus: Any, *, split: str | None, on_error: str, **options: Any) -> Dataset | DatasetDict:
    """Load a user's own rows as rows of ours."""
    name = corpus_name(corpus)
    own = {key: value for key, value in options.items() if key in OwnRows.OPTIONS}
    others = {key: value for key, value in options.items() if key not in OwnRows.OPTIONS and value is not None}
    if unknown := [key for key in others if key not in ("data_dir", "data_files")]:
        near = did_you_mean(unknown[0], [*OwnRows.OPTIONS, "data_dir", "data_files", "split", "role", "on_error"])
        raise TypeError(f"{name} has no option {unknown[0]!r}{near}; its options: {', '.join(OwnRows.OPTIONS)}")
    if on_error not in ("raise", "reject"):
        raise ValueError(f"on_error must be 'raise' or 'reject', got {on_error!r}")
    given = {} if isinstance(corpus, str) else _once(corpus, {"split": split, **others})
    are_files = corpus in OWN if isinstance(corpus, str) else given.get("path") in _BUILDERS and set(given) <= set(_FILES)
    if are_files and "://" not in str({**others, **given}):
        arguments = {**others, **given}
        return _load_files(name, arguments.pop("split", split), on_error, own, **arguments)
    if own.pop("numbered", False):
        raise TypeError(f"{name} has no option 'numbered': it is for files")
    part = split.partition("[")[0] if split and "+" not in split else None
    return from_dataset(_load(corpus, split, others), corpus=name, split=part, on_error=on_error, **own)


def _load_files(
    name: str, split: str | None, on_error: str, own: Mapping[str, Any], *, data_dir: Any = None, data_files: Any = None,
    path: str = "",
) -> Dataset | DatasetDict:  # fmt: skip
    """Load a user's files; what can't be read are rows too, so that no row of a file is lost."""
    check_place(name, data_dir, data_files)
    file_format = {"json": "jsonl"}.get(path or name, path or name)
    default = file_format if file_format in _FORMATS else ""
    if data_files is not None:
        files = assign_splits(name, data_files, split_of)
    else:
        folder = Path(resolve_folder(str(data_dir)) or str(data_dir)).expanduser()
        if not folder.is_dir():
            raise CorpusError(f"{name}: there is no folder {folder}")
        formats = {"jsonl": ("jsonl", "json")}.get(default, (default,)) if default else _FORMATS
        if not (files := find_files(folder, formats)):
            names = ", ".join(sorted(file.name for file in folder.iterdir())[:20]) or "an empty folder"
            endings = [ending for ending, one in FORMATS.items() if one in formats]
            raise CorpusError(f"{name}: {folder} has no train, validation, dev or test with {' or '.join(endings)}; found {names}")
    requested, instruction = parse_split(split)
    if missing := next((part for part in requested if part not in files), None):
        raise CorpusError(OwnRows.no_split(name, missing, files, None))
    tables = {part: read_files(files[part], default) for part in dict.fromkeys(requested) or files}
    layout = describe_tables(tables, own.get("task") or OWN.get(name), {key: own.get(key) for key in _SETTINGS})
    rows = read_tables(tables, ReadRows(layout, name, "", on_error == "reject", numbered=bool(own.get("numbered"))))
    if instruction is None:
        return DatasetDict(rows)
    return cut_split(rows, instruction)


def cut_split(parts: Mapping[str, Dataset], instruction: str) -> Dataset:
    """Return the rows that an instruction names: a split, a slice of it, or several of them."""
    sizes = {name: len(part) for name, part in parts.items()}
    cut = [
        parts[read.splitname].select(range(read.from_ or 0, sizes[read.splitname] if read.to is None else read.to))
        for read in ReadInstruction.from_spec(instruction).to_absolute(sizes)
    ]
    return concatenate_datasets(cut) if len(cut) > 1 else cut[0]


def _once(corpus: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a mapping; raise on one that is given again with another value."""
    if twice := [name for name, value in arguments.items() if value is not None and corpus.get(name, value) != value]:
        raise CorpusError(f"{corpus_name(corpus)}: {twice[0]} is given twice, in the corpus and as an argument: leave one out")
    return dict(corpus)


def _load(corpus: Any, split: str | None, others: Mapping[str, Any]) -> Dataset | DatasetDict:
    if isinstance(corpus, str) and is_saved(corpus):
        if others:
            raise CorpusError(f"{corpus} is a saved dataset, so leave out {next(iter(others))}")
        try:
            return _part(load_from_disk(str(Path(corpus).expanduser())), split, corpus)
        except IndexError as error:
            why = "one of its splits has no rows, and datasets can't load such a folder: save it without that split"
            raise CorpusError(f"{corpus}: {why}") from error
    given = {"path": corpus} if isinstance(corpus, str) else corpus
    _check(given)
    arguments = {**others, **_once(given, {"split": split, **others})}
    try:
        return load_dataset(**{"split": split, **arguments})
    except DatasetGenerationError as error:
        raise CorpusError(f"{corpus_name(corpus)}: {error.__cause__ or error}") from error.__cause__ or error
    except (FileNotFoundError, ConnectionError, ValueError) as error:
        path = arguments["path"]
        if "corresponds to no data" in str(error):
            raise CorpusError(f"{corpus_name(corpus)}: the split {split or 'train'} has no rows") from error
        absent = isinstance(error, FileNotFoundError | ConnectionError)
        what = f"{path} is neither a folder nor a dataset that the Hub gives" if absent else str(corpus_name(corpus))
        raise CorpusError(f"{what}: {error}") from error


def _check(arguments: Mapping[str, Any]) -> None:
    """Raise an error for arguments that `load_dataset` does not have or that are refused."""
    if arguments.get("path") == "pandas":  # a builder of `datasets` that reads pickles
        raise CorpusError("corpus: pandas reads pickles, which may run code: store the rows as Parquet, and give path: parquet")
    known = [name for name in inspect.signature(load_dataset).parameters if name not in (*_REFUSED, "config_kwargs")]
    if "path" not in arguments:
        raise CorpusError(
            f"a corpus that is a mapping must have arguments of load_dataset, with a path; got {', '.join(arguments)}"
        )
    if unknown := [name for name in arguments if name not in known]:
        raise CorpusError(f"corpus: unknown key {unknown[0]!r}{did_you_mean(unknown[0], known)} (allowed: {', '.join(known)})")


def _part(ds: Dataset | DatasetDict, split: str | None, folder: str) -> Dataset | DatasetDict:
    """Return what an instruction names of a saved dataset; see `cut_split`."""
    if split is None:
        return ds
    names = [part.partition("[")[0].strip() for part in split.split("+")]
    parts = ds if isinstance(ds, DatasetDict) else {str(ds.split or "train"): ds}
    for name in names:
        if name not in parts:
            raise CorpusError(f"{folder}: there is no split {name!r}; there is {', '.join(parts)}")
    return cut_split({name: parts[name] for name in names}, split)


# --- the rows that commands take: of a run's folder, of files, or in memory

RowSet = str | Path | Iterable[Mapping[str, Any]]
"""A `Dataset`, rows, a file (`tables.FORMATS`), or a folder: of a run, or of such files."""


def load_file(
    path: str | Path, tasks: Sequence[str] = (), *, given: Mapping[str, Any] | None = None, on_error: str = "raise"
) -> Dataset:
    """Load a user's file with the canonical columns of its task, as `hfcf.load` reads it, whatever its columns are.

    Args:
        path: JSON lines, JSON, CSV, TSV or Parquet.
        tasks: the tasks that its rows may have; by default any task whose columns they fit.
        given: the user's settings, as `hfcf.from_dataset` takes them; what is not given is guessed.
        on_error: see `hfcf.load`.

    Raises:
        CorpusError: the file does not exist, a row can't be read, or its columns can't be guessed.
    """
    name, table, layout = describe_file(path, tasks, given or {})
    return read_tables({"train": table}, ReadRows(layout, name, "train", on_error == "reject"))["train"]


def describe_file(
    path: str | Path, tasks: Sequence[str], given: Mapping[str, Any], *, own_ids: bool = False
) -> tuple[str, Dataset, Layout]:
    """Return the name of the corpus that reads a user's file, the file's table, and its layout.

    With `own_ids`, a column `id` has the ids, however few rows have one.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        folder = (
            "it is a saved dataset, which a recipe reads, corpus: FOLDER"
            if is_saved(str(path))
            else "it is a folder; give a file of it"
        )
        raise CorpusError(f"{path}: {folder if file.is_dir() else 'there is no such file'}")
    table = read_files([file])
    settings = {key: given.get(key) for key in _SETTINGS}
    if own_ids and "id" in table.column_names and "id" not in {**given, **(given.get("columns") or {})}:
        settings["id"] = "id"
    layout = describe_tables({"train": table}, given.get("task") or (tasks[0] if len(tasks) == 1 else None), settings)
    file_format = "jsonl" if format_of(file) == "json" else format_of(file)
    return next((name for name, task in OWN.items() if task == layout.task and name not in _FORMATS), file_format), table, layout


def read_rows(rows: RowSet, needs: Collection[str] = (), *, on_error: str = "raise") -> Iterator[dict[str, Any]]:
    """Yield the rows of a set, with labels as text; for a run's folder, its counterfactuals.

    `load_file` reads a row of a file that lacks a column of `needs` that its task has, or has it in another form. Where `needs` are
    columns of no task, such as ids, all of the row's task are needed. Its other columns stay. With on_error="reject", a row that
    can't be read has a `status` that says why.
    """
    if not isinstance(rows, (str, Path)):
        yield from _name_labels(rows)
        return
    common = nearest_task(frozenset(needs))
    for file in _files(Path(rows)):
        for i, row in enumerate(_raw(file, strict=on_error == "raise")):
            task = common or (nearest_task(frozenset(row)) if needs else None)
            every = needs if common or not task else {*needs, *task.columns, *(["label"] if task.labelled else [])}
            if (needs and not task) or (task and not _fits(row, every, task)):
                yield from _loaded(file, every, task if common else None, on_error, i)
                break
            yield row


def _loaded(file: Path, needs: Collection[str], task: Task | None, on_error: str, skip: int) -> Iterator[dict[str, Any]]:
    """Yield a file's rows from a given row on; its loader reads rows in another form."""
    raw = _raw(file, strict=False)
    try:
        loaded: Iterable[dict[str, Any]] = load_file(file, (task.name,) if task else (), on_error=on_error)
    except LayoutError:
        if task is None:
            raise
        # The caller that needs the columns says which are missing.
        yield from islice(raw, skip, None)
        return
    for own, row in islice(zip(raw, loaded, strict=True), skip, None):
        if row.get("status") is None:
            row.pop("status", None)
        yield own if task and _fits(own, needs, task) else {**own, **row}


def _raw(file: Path, *, strict: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file as they are; a line that can't be read is an error, or a row without columns."""
    for record in read_records(file):
        if record.unreadable and strict:
            raise ValueError(f"{file}, {record.unreadable}: write a JSON object on each line")
        yield {} if record.unreadable else dict(record.value)


def _fits(row: Mapping[str, Any], needs: Collection[str], task: Task) -> bool:
    """Say whether a row has the needed columns of the task, each in its form."""
    features = {name: task.features[name] for name in needs if name in task.features}
    if not all(name in row and _has_form(row[name], feature) for name, feature in features.items()):
        return False
    label = row["label"] if "label" in features else None
    return label is None or (isinstance(label, str) and label in (task.labels or (label,)))


def _has_form(value: Any, feature: Any) -> bool:
    if value is None:
        return True
    if isinstance(feature, Mapping):
        return isinstance(value, Mapping) and all(name in value and _has_form(value[name], feature[name]) for name in feature)
    if isinstance(feature, List):
        return isinstance(value, list) and all(_has_form(each, feature.feature) for each in value)
    return not isinstance(value, Mapping | list)


def read_sources(rows: RowSet) -> dict[str, dict[str, Any]] | None:
    """Return the source rows of a run's counterfactuals, by id; None if the set is not a run's folder."""
    folder = Path(rows) / "data" / "augmented" if isinstance(rows, (str, Path)) else None
    return {str(row["id"]): row for row in read_rows(folder)} if folder and folder.is_dir() else None


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    run = path / "data" / "default"
    folder = run if run.is_dir() else path
    files = sorted(file for file in folder.glob("*") if file.suffix in FORMATS) if folder.is_dir() else []
    if not files:
        raise FileNotFoundError(f"{path} is neither a run's folder, nor a file, nor a folder of files ({', '.join(FORMATS)})")
    return files


def _name_labels(rows: Any) -> Iterator[dict[str, Any]]:
    """Yield rows with the class names of a published set instead of the class numbers."""
    features = getattr(rows, "features", None) or {}
    classes = {name: feature for name, feature in features.items() if isinstance(feature, ClassLabel)}
    for row in rows:
        yield {**row, **{name: class_name(row[name], feature) for name, feature in classes.items()}}
