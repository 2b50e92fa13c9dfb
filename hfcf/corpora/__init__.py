"""Load published corpora, and a user's own files, as rows of the canonical columns: `hfcf.load`.

Each public module of this folder is a corpus of the same name, with a `BUILDER`; it is imported when the corpus is
first used. Other packages add corpora by entry points of the group `hfcf.corpora`, and users by the variable `HFCF_CORPORA`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfcf.core.names import did_you_mean
from hfcf.core.plugins import discover_modules, files_of, import_file, with_plugins
from hfcf.core.recipe import is_dataset, resolve_folder
from hfcf.corpora.custom import OWN

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from hfcf.corpora.base import Corpus

PASSAGES = "passages"
"""The name of passage collections, whose rows belong to no task."""
FILES = "HFCF_CORPORA"
"""The environment variable that lists Python files, each with a corpus of the same name; a recipe can't name code."""
_NO_CORPORA = ("base", "custom", "formats", PASSAGES)
"""Modules that are not a corpus of their name."""

DataFiles = str | Path | Sequence[str | Path] | Mapping[str, str | Path | Sequence[str | Path]]


def load(
    name: str | Mapping[str, Any] | type[Corpus],
    *,
    data_dir: str | Path | None = None,
    data_files: DataFiles | None = None,
    split: str | None = None,
    role: str | None = None,
    on_error: str = "raise",
    **options: Any,
) -> Dataset | DatasetDict:
    """Load a corpus from its original release files, with the canonical columns of its task.

    `load("passages", …)` loads a passage collection, with the columns `id, title, text`: see `hfcf.corpora.passages`.

    Args:
        name: a name from `names()`. "jsonl", "csv" and "parquet" read a user's own claims; "relations" reads own sentences,
            "questions" own questions, and "structures" own claims with argument structures. It may also be a dataset in your own
            columns, which `hfcf.from_dataset` reads. It is a Hub id with its namespace ("stanfordnlp/snli"), a mapping of arguments
            for `load_dataset`, or a folder (of `save_to_disk`, or Parquet with a card). Or it is a class of your own,
            `hfcf.load(FactFiles, …)`.
        data_dir: the folder with the release files under their official names; "recipes:NAME" is a folder of the recipes.
        data_files: instead of `data_dir`, the files themselves: a file, several files, or a mapping split → files.
        split: an official split ("train", "validation" or its alias "dev", "test" …) or a slice like "validation[:300]". None loads
            every split that has files, except blind splits, as a `DatasetDict`. A corpus with samples also accepts their names:
            `split="10pct"` of "ccg_semeval" is the train split of that sample.
        role: "train" declares that rows of a dev or test split are used for training; it is recorded in `ds.info.description`. It
            does not change any row.
        on_error: "raise", or "reject": a record that can't be read becomes a row whose `status` says why. Only this mode adds
            the column `status`; it is null on every good row.
        options: options of the corpus, listed in its module's docstring; for a dataset in your columns, the options of
            `from_dataset`.

    Raises:
        CorpusError: files are missing or have an unexpected content; the message shows what was found.
    """
    from hfcf.corpora.base import CorpusError
    from hfcf.corpora.base.info import parse_split
    from hfcf.corpora.base.prepare import prepare_builder

    if role not in (None, "train"):
        raise ValueError(f"role must be 'train' (rows of a dev or test split used for training) or None, got {role!r}")
    from hfcf.corpora.custom.source import load_own

    _refuse_code(name)
    if _is_own(name):
        own = load_own(name, split=split, on_error=on_error, data_dir=data_dir, data_files=data_files, **options)
        return _with_role(own, role, split or "all splits")
    if not isinstance(name, str | type):
        raise TypeError(f"a corpus must be a name, a mapping or a class, got {name!r}")
    if name == PASSAGES:
        if split or role:
            raise ValueError("a passage collection has neither splits nor roles")
        return import_module(f"hfcf.corpora.{PASSAGES}").load_passages(
            data_dir=data_dir, data_files=data_files, on_error=on_error, **options
        )
    cls = builder_class(name)
    name = name if isinstance(name, str) else cls.INFO.name
    if data_dir is not None:
        data_dir = resolve_folder(str(data_dir)) or data_dir
    split, options = cls.read_split(split, options)
    requested, instruction = parse_split(split)
    files, resources = cls.locate(name, data_dir=data_dir, data_files=data_files, options=options)
    if missing := [part for part in requested if part not in files]:
        raise CorpusError(cls.no_split(name, missing[0], files, data_dir))
    selected = requested or [part for part in files if part not in cls.BLIND] or list(files)
    files = {part: files[part] for part in selected}
    builder = prepare_builder(cls, name, files, resources, on_error=on_error, options=options)
    try:
        ds: Dataset | DatasetDict = builder.as_dataset(split=instruction)
    except ValueError as error:  # from `datasets`, without the file's name
        if "no data" not in str(error):
            raise
        read = ", ".join(str(path) for part in files.values() for path in part)
        raise CorpusError(f"{name}: the split {instruction or ', '.join(files)} has no rows in {read}") from None
    return _with_role(ds, role, instruction or ", ".join(selected))


def _with_role(ds: Dataset | DatasetDict, role: str | None, official: str) -> Dataset | DatasetDict:
    """Record the role of rows in their description."""
    for part in (ds.values() if isinstance(ds, dict) else [ds]) if role else ():
        part.info.description += f"\nrole: {role} (rows of the official split {official!r})"
    return ds


def corpus_name(corpus: Any) -> str:
    """Return a corpus's name in cards and tables: for a dataset in a user's columns its Hub id, or its folder's name."""
    from hfcf.corpora.custom.source import corpus_name as name_of

    return name_of(corpus)


def builder_class(name: Any) -> type[Corpus]:
    """Import a corpus's module and return its builder; for a dataset in a user's columns, a builder with front matter only."""
    from hfcf.corpora.custom.source import own_builder

    _refuse_code(name)
    if isinstance(name, type):
        return name
    if _is_own(name):
        return own_builder(name)
    if (module := (corpora := _modules()).get(name)) is None:
        near = did_you_mean(name, corpora) or f"; there are {', '.join(corpora)}"
        raise ValueError(f"there is no corpus {name!r}{near}")
    return (import_file(Path(module)) if module.endswith(".py") else import_module(module)).BUILDER


def options_of(corpus: Any, ways: int | None, *, files: bool = False) -> dict[str, Any]:
    """Return the options by which a corpus has rows of so many labels; {} if it needs none, or if its files are named."""
    return {} if ways is None or files else dict(builder_class(corpus).WAYS.get(ways, {}))


def _refuse_code(name: Any) -> None:
    """Raise for a path of code: a recipe could hold it, and a recipe runs no code."""
    if isinstance(name, str) and name.partition(":")[0].endswith(".py"):
        path = Path(name.partition(":")[0])
        raise ValueError(
            f"{name} is code, which a name of a corpus never runs: give its class, hfcf.load({path.stem}.BUILDER, …), or set "
            f"{FILES}={path} and name it {path.stem!r}"
        )


def _is_own(name: Any) -> bool:
    """Say whether a corpus is a user's own files or dataset; a folder with the name of a corpus is not."""
    return name in OWN if isinstance(name, str) and name in _modules() else is_dataset(name)


def names() -> list[str]:
    """List the corpora that `load` reads: this library's in alphabetical order, then corpora from other packages and files."""
    return list(_modules())


def _modules() -> dict[str, str]:
    modules = {name: module for name, module in discover_modules("hfcf.corpora").items() if name not in _NO_CORPORA}
    modules |= dict.fromkeys(OWN, "hfcf.corpora.custom.source")
    installed = with_plugins(dict(sorted(modules.items())), "hfcf.corpora")
    return {**{name: str(path) for name, path in files_of(FILES).items()}, **installed}
