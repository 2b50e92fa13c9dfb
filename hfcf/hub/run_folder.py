"""Read the folder of a run, or of a repository that holds one: its card, `run.json`, its rows, and all of it as a `Result`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from datasets import DatasetDict, load_dataset
from huggingface_hub import snapshot_download
from huggingface_hub.utils import HFValidationError, validate_repo_id

from hfcf.core import schema
from hfcf.core.paths import inside
from hfcf.core.safe_yaml import front_matter, read_yaml
from hfcf.core.task import tasks
from hfcf.hub.errors import FAILURES, HubError, explain

RESULT = ("README.md", "run.json", "recipe.yaml", "data/**/*.parquet")
"""What `load_result` downloads of a repository."""


def parse_file(path: Path) -> dict[str, Any]:
    """Parse a file of a result, by its ending: JSON, YAML, or a card's front matter; {} if it is no mapping.

    Raises:
        FileNotFoundError: there is no such file.
        HubError: it can't be read; a ValueError.
    """
    parsers: dict[str, Callable[[str], Any]] = {".md": front_matter, ".json": json.loads, ".yaml": read_yaml}
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no {path.name}: give the folder of a finished hfcf run")
    try:
        value = parsers[path.suffix](path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        why = getattr(error, "problem", None) or str(error).partition(":")[0]
        raise HubError(f"{path} can't be read ({why}): restore it, or run again") from error
    return value if isinstance(value, dict) else {}


def read_front(card: Path) -> dict[str, Any]:
    """Read a card's front matter; {} where there is no card."""
    try:
        return parse_file(card)
    except (FileNotFoundError, HubError):
        return {}


def list_tags(front: Mapping[str, Any]) -> list[str]:
    """List a card's tags."""
    tags = front.get("tags")
    return [str(tag) for tag in (tags if isinstance(tags, list) else [tags])]


def is_own_card(front: Mapping[str, Any]) -> bool:
    """Say whether this library wrote a card, by the card's tags."""
    return any(tag.partition("-")[0] == "hfcf" for tag in list_tags(front))


def read_run(folder: Path) -> dict[str, Any] | None:
    """Read `run.json`; None where there is none.

    Raises:
        HubError: it can't be read, or `hfcf run` did not write it; a ValueError.
    """
    if not (folder / "run.json").is_file():
        return None
    run = parse_file(folder / "run.json")
    if "funnel" not in run:
        raise HubError(f"{folder / 'run.json'} was not written by hfcf run: it has no funnel")
    return run


def data_files(front: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Map each configuration of a card's front matter to {split: its file or shards}, as `hfcf.hub.folder.configs` writes it.

    Configurations that name their files in other ways (patterns, folders) are left out: this library did not write them.
    """
    files, configs = {}, front.get("configs")
    for config in configs if isinstance(configs, list) else ():
        match config:
            case {"config_name": str(name), "data_files": [*entries]} if all(_names_files(entry) for entry in entries):
                files[name] = {entry["split"]: entry["path"] for entry in entries}
    return files


def _names_files(entry: Any) -> bool:
    match entry:
        case {"split": str(), "path": [_, *_] as paths}:
            return all(isinstance(path, str) for path in paths)
    return False


def list_splits(folder: Path) -> dict[str, dict[str, list[Path]]]:
    """List each configuration's Parquet files by split, as the card does: a folder can also hold an older run's.

    Raises:
        FileNotFoundError: there is no card, or a file that it lists is missing.
        ValueError: the card can't be read, or lists a file outside of the folder.
    """
    listed = data_files(parse_file(folder / "README.md"))
    splits = {
        config: {split: [inside(folder, path) for path in paths] for split, paths in files.items()}
        for config, files in listed.items()
    }
    for path in (path for files in splits.values() for paths in files.values() for path in paths):
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder / 'README.md'} lists {path.relative_to(folder)}, which is not there: run the recipe again"
            )
    return splits


def list_files(folder: Path) -> dict[str, list[Path]]:
    """List each configuration's Parquet files; see `list_splits`."""
    return {config: [path for paths in files.values() for path in paths] for config, files in list_splits(folder).items()}


def count_rows(paths: Sequence[Path]) -> int:
    """Count the rows of Parquet files."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in paths)


def read_rows(paths: Sequence[Path], take: int | None = None, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield rows of Parquet files, a batch of them in memory at a time; labels that are classes as their names.

    Args:
        paths: the files.
        take: how many rows, an even sample of them.
        columns: those to read; columns that a file lacks are left out.
    """
    import pyarrow.parquet as pq
    from datasets import Features

    total, i = count_rows(paths), 0
    take = total if take is None else min(take, total)
    for path in paths:
        with pq.ParquetFile(path) as file:
            names = getattr(Features.from_arrow_schema(file.schema_arrow).get("label"), "names", None)
            present = columns and [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=2000, columns=present):
                chosen = [n for n in range(batch.num_rows) if (i + n + 1) * take // total > (i + n) * take // total]
                i += batch.num_rows
                for row in (batch.take(chosen) if len(chosen) < batch.num_rows else batch).to_pylist():
                    if names and row.get("label") is not None:
                        row["label"] = names[row["label"]] if row["label"] >= 0 else None
                    yield row


def number_columns(paths: Sequence[Path]) -> list[str]:
    """List what metrics wrote of each row: columns of numbers; a number inside a structure is "column.field"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def is_number(kind: pa.DataType) -> bool:
        return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)

    canonical = {column for columns in (*(task.features for task in tasks().values()), schema.PROVENANCE) for column in columns}
    names = []
    for field in pq.read_schema(paths[0]) if paths else []:
        if field.name in canonical:
            continue
        if pa.types.is_struct(field.type):
            names += [f"{field.name}.{inner.name}" for inner in field.type if is_number(inner.type)]
        elif is_number(field.type):
            names.append(field.name)
    return names


def check_name(repo: str) -> None:
    """Raise `HubError` for what is no name of a repository."""
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise HubError(f"{repo!r} is not a repository name: write NAMESPACE/NAME") from error


@dataclass(frozen=True)
class Result:
    """The result of `hfcf run`.

    Args:
        name: the repository or the folder.
        commit: the repository's commit; None for a folder.
        recipe: as it ran.
        run: the contents of `run.json`: settings, versions, seeds, the funnel, the numbers of rows.
        folder: where its files are.
    """

    name: str
    commit: str | None
    recipe: dict[str, Any]
    run: dict[str, Any]
    folder: Path

    def __repr__(self) -> str:
        sizes = {split: len(rows) for split, rows in self.dataset.items()}
        metrics = ", ".join(self.metrics) or "none"
        return f"Result({self.name!r}, {self.run.get('system')}, counterfactuals: {sizes}, metrics: {metrics})"

    @cached_property
    def dataset(self) -> DatasetDict:
        """The counterfactuals, by official split; empty when the run accepted none."""
        return self._load("default")

    @cached_property
    def augmented(self) -> DatasetDict:
        """Originals and counterfactuals in the task's columns, `train` and `validation`."""
        return self._load("augmented")

    @cached_property
    def rejected(self) -> DatasetDict:
        """Every rejected source and candidate with the reason."""
        return self._load("rejected")

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the run; empty when its recipe requests none."""
        return dict(self.run.get("metrics") or {})

    def _load(self, config: str) -> DatasetDict:
        splits = list_splits(self.folder).get(config, {})
        files = {split: [str(path) for path in paths] for split, paths in splits.items()}
        return load_dataset("parquet", data_files=files) if files else DatasetDict()


def load_result(repo_or_folder: str | Path, revision: str | None = None, token: str | None = None) -> Result:
    """Read a published run: its rows, its recipe and its numbers, all of one commit.

    Files in the cache are not downloaded again; in offline mode (`HF_HUB_OFFLINE=1`), or when the Hub can't be reached, only the
    cache is read.

    Args:
        repo_or_folder: a dataset repository ("me/hover-race"), or the folder of a run, which is preferred when both exist.
        revision: a branch, a tag or a commit; otherwise the main branch.
        token: for a private or gated repository; otherwise the token of HF_TOKEN or `hf auth login`.

    Returns:
        A `Result`: `dataset`, `augmented` and `rejected` are `DatasetDict`s, `recipe`, `run` and `metrics` dictionaries.

    Raises:
        HubError: there is no such result, or no access to it; one line, with the cure.

    >>> load_result("nothing/like/this")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: there is no folder nothing/like/this, and it is not a repository name
    """
    name = str(repo_or_folder)
    if Path(name).is_dir():
        if revision is not None:
            raise HubError(f"{name} is a folder, which has no revisions: leave revision out, or give the repository's name")
        return _read_result(name, None, Path(name))
    try:
        check_name(name)
    except HubError as error:
        raise HubError(f"there is no folder {name}, and it is not a repository name") from error
    try:
        folder = Path(snapshot_download(name, repo_type="dataset", revision=revision, token=token, allow_patterns=list(RESULT)))
    except FAILURES as error:
        at = f" at {revision}" if revision else ""
        failure = explain(error, f"there is no folder {name} here; the dataset {name}{at} of the Hub", token)
    else:
        return _read_result(name, folder.name, folder)
    raise failure


def _read_result(name: str, commit: str | None, folder: Path) -> Result:
    try:
        run, recipe = parse_file(folder / "run.json"), parse_file(folder / "recipe.yaml")
        list_splits(folder)
    except (FileNotFoundError, ValueError) as error:
        raise HubError(f"{name} is not a result of hfcf run: {error}") from error
    return Result(name, commit, recipe, run, folder)
