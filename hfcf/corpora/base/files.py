"""Where a user says that files are: a folder, or the files themselves, by split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from hfcf.corpora.base.info import ALIASES
from hfcf.corpora.formats.read import CorpusError

Files = dict[str, list[Path]]
"""The files of each split."""


def check_place(name: str, data_dir: Any, data_files: Any) -> None:
    """Raise an error unless either a folder or files are given."""
    if (data_dir is None) == (data_files is None):
        both = (
            f"data_dir={str(data_dir)!r} and data_files={data_files!r} are both set" if data_dir is not None else "it has no files"
        )
        raise CorpusError(
            f"{name}: {both}: give the folder of the files as data_dir (--set data_dir=FOLDER), or the files as data_files (--set "
            "data_files=FILE), and not both: null for the second if the recipe names it"
        )


def assign_splits(name: str, data_files: Any, split_of: Callable[[Path], str | None]) -> Files:
    """Sort a user's files by split: that of the mapping, else that of the file's name."""
    files: Files = {}
    if isinstance(data_files, Mapping):
        files.update({ALIASES.get(str(split), str(split)): _paths(value) for split, value in data_files.items()})
    else:
        for path in _paths(data_files):
            if (split := split_of(path)) is None:
                raise CorpusError(f"{name}: {path.name} is not an official file name; write data_files={{split: path}}")
            files.setdefault(split, []).append(path)
    if absent := next((path for paths in files.values() for path in paths if not path.is_file()), None):
        folder = f"it is a folder: give it as data_dir, in the recipe or with --set data_dir={absent} --set data_files=null"
        cure = folder if absent.is_dir() else f"there is no such file in {absent.absolute().parent}"
        raise CorpusError(f"{name}: data_files={str(absent)!r}: {cure}")
    if not any(files.values()):
        raise CorpusError(f"{name}: data_files names no file")
    return files


def _paths(value: Any) -> list[Path]:
    return [Path(path).expanduser() for path in ([value] if isinstance(value, str | PathLike) else value)]
