"""A user's own dataset as a corpus: a dataset of the Hub, the arguments of `load_dataset`, or a folder of `save_to_disk`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from datasets import Dataset, DatasetDict, ReadInstruction, load_dataset, load_from_disk
from datasets.exceptions import DatasetGenerationError

from hfcf.core.names import did_you_mean
from hfcf.core.recipe import is_saved
from hfcf.corpora.base import Corpus, CorpusError, CorpusInfo
from hfcf.corpora.custom.load import from_dataset

_REFUSED = ("streaming", "trust_remote_code", "token")
"""Arguments of `load_dataset` that are refused: runs need all rows, remote code is never run, and recipes are published."""


class OwnRows(Corpus):
    """The front matter and options of a user's own dataset, whose rows `from_dataset` reads."""

    INFO = CorpusInfo(name="own", title="Rows of a user's own", release="yours")
    OPTIONS: ClassVar = {
        "task": "verification, relation, qa or classification, if the columns fit several",
        "columns": "our field → your column",
        "labels": "your label → ours",
        "id": "the column with the ids",
        "group": "the column that says which rows belong together",
        "title": "the column with the title of evidence that is one text",
        "ends": "inclusive or exclusive last places of entities",
    }


def corpus_name(corpus: Any) -> str:
    """Return the name of a corpus in cards and tables."""
    if isinstance(corpus, Mapping):
        path = corpus_name(str(corpus.get("path")))
        return f"{path}/{corpus['name']}" if corpus.get("name") else path
    if "/" not in corpus:
        return str(corpus)
    # Cards are published, so they must not contain local paths.
    return Path(corpus).resolve().name if Path(corpus).expanduser().exists() or corpus.startswith(("/", ".", "~")) else corpus


def own_builder(corpus: Any) -> type[OwnRows]:
    """Return the front matter of a user's own dataset."""
    name = corpus_name(corpus)
    path = corpus.get("path") if isinstance(corpus, Mapping) else corpus
    hub = name == path and "/" in name
    info = replace(OwnRows.INFO, name=name, title=name, hub_id=name if hub else None)
    return type("OwnRows", (OwnRows,), {"INFO": info, "__module__": __name__})


def load_own(corpus: Any, *, split: str | None, on_error: str, **options: Any) -> Dataset | DatasetDict:
    """Load a user's own dataset as rows of ours."""
    own = {name: value for name, value in options.items() if name in OwnRows.OPTIONS}
    others = {name: value for name, value in options.items() if name not in OwnRows.OPTIONS and value is not None}
    if unknown := [name for name in others if name not in ("data_dir", "data_files")]:
        raise TypeError(f"{corpus_name(corpus)} has no option {unknown[0]!r}; its options: {', '.join(OwnRows.OPTIONS)}")
    name = split.partition("[")[0] if split and "+" not in split else None
    return from_dataset(_load(corpus, split, others), corpus=corpus_name(corpus), split=name, on_error=on_error, **own)


def _load(corpus: Any, split: str | None, others: Mapping[str, Any]) -> Dataset | DatasetDict:
    if isinstance(corpus, str) and is_saved(corpus):
        if others:
            raise CorpusError(f"{corpus} is a saved dataset, so leave out {next(iter(others))}")
        return _part(load_from_disk(str(Path(corpus).expanduser())), split, corpus)
    given = {"path": corpus} if isinstance(corpus, str) else corpus
    _check(given)
    arguments = {"split": split, **others}
    if twice := [name for name, value in arguments.items() if value is not None and given.get(name, value) != value]:
        raise CorpusError(f"{corpus_name(corpus)}: {twice[0]} is given twice, in the corpus and as an argument: leave one out")
    arguments = {**others, **given}
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
    """Return a split of a saved dataset, or a slice of a split."""
    if split is None:
        return ds
    name = split.partition("[")[0]
    parts = ds if isinstance(ds, DatasetDict) else {str(ds.split or "train"): ds}
    if name not in parts:
        raise CorpusError(f"{folder}: there is no split {name!r}; there is {', '.join(parts)}")
    if name == split:
        return parts[name]
    (read,) = ReadInstruction.from_spec(split).to_absolute({name: len(parts[name])})
    return parts[name].select(range(read.from_ or 0, len(parts[name]) if read.to is None else read.to))
