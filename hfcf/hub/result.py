"""`hfcf.load_result`: read a published run, its rows and how they were made, from the Hub or from a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from datasets import DatasetDict, load_dataset
from huggingface_hub import get_token, hf_hub_download
from huggingface_hub.errors import RemoteEntryNotFoundError

from hfcf.core.mapping import read_cached
from hfcf.core.paths import inside
from hfcf.hub.contents import data_files, parse_file
from hfcf.hub.errors import FAILURES, HubError, explain
from hfcf.hub.folder import as_list
from hfcf.hub.push import check_name

Fetch = Callable[[str], Path]
"""Return the local path of a file, by its path in the repository."""


@dataclass(frozen=True)
class Result:
    """The result of `hfcf run`.

    Args:
        name: the repository or the folder.
        commit: the repository's commit; None for a folder.
        dataset: the counterfactuals, by official split; empty when the run accepted none.
        recipe: as it ran.
        run: the contents of `run.json`: settings, versions, seeds, the funnel, the numbers of rows.
    """

    name: str
    commit: str | None
    dataset: DatasetDict
    recipe: dict[str, Any]
    run: dict[str, Any]
    _part: Callable[[str], DatasetDict] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        sizes = {split: len(rows) for split, rows in self.dataset.items()}
        metrics = ", ".join(self.metrics) or "none"
        return f"Result({self.name!r}, {self.run.get('system')}, counterfactuals: {sizes}, metrics: {metrics})"

    @cached_property
    def augmented(self) -> DatasetDict:
        """Originals and counterfactuals in the task's columns, `train` and `validation`; read at the first use."""
        return self._part("augmented")

    @cached_property
    def rejected(self) -> DatasetDict:
        """Every rejected source and candidate with the reason; read at the first use."""
        return self._part("rejected")

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the run; empty when its recipe requests none."""
        return dict(self.run.get("metrics") or {})


def load_result(repo_or_folder: str | Path, revision: str | None = None, token: str | None = None) -> Result:
    """Read a published run: its rows, its recipe and its numbers, all of one commit.

    Files in the cache are not downloaded again; in offline mode (`HF_HUB_OFFLINE=1`), or when the Hub can't be reached, only the
    cache is read. Parts that are read later (`rejected`) come from the same commit.

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
        return _read(name, None, lambda path: _require(Path(name), path))
    try:
        check_name(name)
    except HubError as error:
        raise HubError(f"there is no folder {name}, and it is not a repository name") from error
    run = _download(name, "run.json", revision, token)
    # The cached path names the commit ("…/snapshots/<commit>/run.json"): everything else is read from that commit.
    commit = run.parent.name
    return _read(name, commit, lambda path: _download(name, path, commit, token))


def _read(name: str, commit: str | None, fetch: Fetch) -> Result:
    # run.json first: without it this is not a result, whatever its card looks like.
    run, recipe, front = (parse_file(path, fetch(path).read_bytes(), name) for path in ("run.json", "recipe.yaml", "README.md"))
    configs = data_files(front)

    def part(config: str) -> DatasetDict:
        files = {split: [str(fetch(path)) for path in as_list(paths)] for split, paths in configs.get(config, {}).items()}
        return read_cached(lambda: load_dataset("parquet", data_files=files)) if files else DatasetDict()

    return Result(name, commit, part("default"), recipe, run, part)


def _require(folder: Path, path: str) -> Path:
    if not (file := _inside(folder, path)).exists():
        raise HubError(f"{folder} has no {path}: it is not a finished result of hfcf run")
    return file


def _inside(folder: str | Path, path: str) -> Path:
    """Return the path of a file that a card names: somebody else may have written the card."""
    try:
        return inside(folder, path)
    except ValueError as error:
        raise HubError(str(error)) from None


def _download(repo: str, path: str, revision: str | None, token: str | None) -> Path:
    _inside(repo, path)
    try:
        return Path(hf_hub_download(repo, path, repo_type="dataset", revision=revision, token=token))
    except RemoteEntryNotFoundError:
        failure = HubError(f"the dataset {repo} has no {path}: it is not a result of hfcf run; read it with load_dataset")
    except FAILURES as error:
        at = f" at {revision}" if revision else ""
        failure = explain(error, f"the dataset {repo}{at}", token or get_token())
    raise failure
