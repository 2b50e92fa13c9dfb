"""Run a builder over release files, or reuse the rows that it wrote from the same files, options and code."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from inspect import getfile
from pathlib import Path
from typing import Any

import datasets
from datasets.data_files import DataFilesDict, DataFilesList

from hfcf.core.paths import cache_dir
from hfcf.corpora.base.builder import Corpus, Files
from hfcf.corpora.formats.read import CorpusError


def prepare_builder(
    cls: type[Corpus], name: str, files: Files, resources: Mapping[str, Path], *, on_error: str, options: Mapping[str, Any]
) -> Corpus:
    """Return the builder with its rows in the cache; rebuild them if a file, an option or the code has changed."""
    # Explicit files with a hash of their contents: with patterns or data_dir= the builder's cache returned stale rows.
    data_files = DataFilesDict()
    for split, paths in files.items():
        data_files[split] = DataFilesList([str(path.resolve()) for path in paths], [(_sha256(path),) for path in paths])
    fields = {field.name for field in dataclasses.fields(cls.BUILDER_CONFIG_CLASS)}
    builder = cls(
        cache_dir=str(cache_dir() / "corpora"),
        dataset_name=f"hfcf_{name}",
        config_name=name,
        hash=_code_hash(cls),
        data_files=data_files,
        on_error=on_error,
        resources={key: str(path.resolve()) for key, path in resources.items()},
        stamps={key: _stamp(path) for key, path in resources.items()},
        **{key: value for key, value in options.items() if key in fields},
    )
    try:
        builder.download_and_prepare()
    except datasets.exceptions.DatasetGenerationError as error:
        # The message of `datasets` only says that an error occurred.
        if isinstance(error.__cause__, CorpusError):
            raise error.__cause__ from None
        raise
    return builder


def _code_hash(cls: type[Corpus]) -> str:
    # Part of the cache key, so that changed code rebuilds the rows. A builder of a plugin is outside this folder.
    corpora = Path(__file__).parents[1]
    core = corpora.with_name("core")
    shared = [core / "schema.py", core / "splits.py", *sorted(corpora.with_name("tasks").glob("*.py"))]
    sources = [*sorted({*corpora.rglob("*.py"), Path(getfile(cls)).resolve()}), *shared]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    # Resources can have gigabytes, so their size and time are hashed instead of their contents.
    stats = [item.stat() for item in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return sum(stat.st_size for stat in stats), max((stat.st_mtime_ns for stat in stats), default=0)
