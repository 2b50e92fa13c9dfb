"""`hfcf push`: a finished folder as a repository of the Hub.

One commit brings a repository from what it has to what the folder has: large files go up first and belong to no revision until
that commit names them, so whatever fails, the head is the old state or the new one. Everything is decided from what the repository
has at that moment, so a push that failed is simply done again: what went up already is not sent twice, and where nothing differs
there is no commit. Nor is there a second one when only the answer to the first was lost: the repetition has an old parent, which
is a conflict, and what is read anew has all that the folder has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token, hf_hub_url
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from hfcf.hub.check_card import REPOSITORY
from hfcf.hub.contents import Contents, contents, ours, parsed, written
from hfcf.hub.errors import FAILURES, LOGIN, OFFLINE, HubError, patiently, told
from hfcf.hub.files import check_fit, files_of, same, size

Changes = tuple[tuple[str, ...], tuple[str, ...]]
"""Paths of a commit: those that it sends and those that it removes."""


@dataclass(frozen=True)
class Plan:
    """What a push would send: no request is made for it.

    Args:
        repo: the repository's name.
        kind: "dataset" or "model".
        files: {path in the repository: bytes}.
        left_out: files of the folder that stay where they are.
    """

    repo: str
    kind: str
    files: Mapping[str, int]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Pushed:
    """What a push did.

    Args:
        repo: the repository's name, with its namespace.
        kind: "dataset" or "model".
        url: its page.
        commit: the head afterwards.
        private: whether others can't see it.
        sent: files of the commit; none when the repository had them all.
        removed: files of an older push that the commit removed.
    """

    repo: str
    kind: str
    url: str
    commit: str
    private: bool
    sent: tuple[str, ...]
    removed: tuple[str, ...]


def plan(folder: str | Path, repo: str) -> Plan:
    """What `push` would send. It reads the folder alone.

    Args:
        folder: of `hfcf run` or `hfcf train`.
        repo: the repository's name.

    Raises:
        HubError: see `contents`; the name is none; the Hub would not understand the card; or a file holds a token.

    >>> plan(".", "a/b/c")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: 'a/b/c' is no repository's name: write NAMESPACE/NAME
    """
    check_name(repo)
    found = contents(folder)
    check_fit(found)
    sizes = {path: size(file) for path, file in files_of(found, repo).items()}
    return Plan(repo, found.kind, sizes, found.left_out)


def push(folder: str | Path, repo: str, *, public: bool = False, revision: str | None = None, token: str | None = None) -> Pushed:
    """Make a repository of the Hub what a folder is: a dataset repository of a run's, a model repository of a training's.

    Pushed again, a folder that did not change makes no commit; one that did makes one, which also removes the files of the older
    push that it has no more. Files that this library did not write are left as they are, and a repository of something else is
    not pushed to.

    Args:
        folder: of `hfcf run` or `hfcf train`; which, is told by what is in it.
        repo: its name, with the namespace or in your own.
        public: make it so that everyone sees it; else it is made private, and one that is public is not pushed to.
        revision: a branch, made from the main one when it is not there.
        token: else the one of HF_TOKEN or of `hf auth login` is used. It is never printed, logged or written.

    Raises:
        HubError: the folder must not be pushed, or the Hub refused; one line, with the cure.

    >>> push("/nowhere", "me/hover-race")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: there is no folder /nowhere
    """
    check_name(repo)
    if revision is not None and re.fullmatch("[0-9a-f]{40}", revision):
        raise HubError(f"{revision} is a commit, which can't change: give a branch as the revision")
    found = contents(folder)
    secret = ready(token)
    check_fit(found, secret)
    api = HfApi(token=secret)
    tried: list[Changes] = []
    try:
        return patiently(lambda: _attempt(api, found, repo, tried, public=public, revision=revision), conflicts=True)
    except HubError:
        raise
    except FAILURES as error:
        failure = told(error, f"the {found.kind} {repo}", secret)
    # Here, where no other error is handled: the request that failed carries the token, and the address of an upload is signed.
    raise failure


def ready(token: str | None = None) -> str:
    """The token that is used, when a push has what it needs on this machine.

    Raises:
        HubError: offline mode is on, or there is no token.
    """
    if constants.HF_HUB_OFFLINE:
        raise HubError(OFFLINE)
    if not (secret := token or get_token()):
        raise HubError(f"the Hub needs a token to write: {LOGIN}")
    return secret


def check_name(repo: str) -> None:
    """Raise `HubError` when the Hub could have no repository of this name."""
    if not REPOSITORY.fullmatch(repo):
        raise HubError(f"{repo!r} is no repository's name: write NAMESPACE/NAME")


def _attempt(api: HfApi, found: Contents, repo: str, tried: list[Changes], *, public: bool, revision: str | None) -> Pushed:
    """One push, from what the repository has now. `tried` has the commit of an attempt before, and takes that of this one."""
    if "/" not in repo:
        repo = f"{patiently(api.whoami)['name']}/{repo}"
    info = _repository(api, repo, found.kind, public, revision)
    if not info.private and not public:
        raise HubError(f"the {found.kind} {repo} is public: push with --public, or make it private in its settings first")
    listed = partial(api.list_repo_tree, repo, recursive=True, revision=info.sha, repo_type=found.kind)
    there = {entry.path: entry for entry in patiently(lambda: list(listed())) if isinstance(entry, RepoFile)}
    older = _older(api, repo, found.kind, info.sha, there)
    new = files_of(found, repo)
    sent = tuple(path for path, file in new.items() if path not in there or not same(file, there[path]))
    removed = tuple(path for path in older if path not in new)
    commit = str(info.sha)
    if sent or removed:
        tried[:] = [(sent, removed)]
        message = "Update with hfcf" if older else "Upload with hfcf"
        commit = _commit(api, repo, found.kind, _operations(new, sent, removed), revision, str(info.sha), message)
    elif tried:  # that commit was made, and only the answer to it was lost
        sent, removed = tried[0]
    url = f"{api.endpoint}/{constants.REPO_TYPES_URL_PREFIXES.get(found.kind, '')}{repo}"
    return Pushed(repo, found.kind, url, commit, bool(info.private), sent, removed)


def _repository(api: HfApi, repo: str, kind: str, public: bool, revision: str | None) -> Any:
    """What the Hub says of the repository and of the branch's head; both are made when they are not there."""
    info = partial(api.repo_info, repo, repo_type=kind)
    try:
        main = patiently(info)
    except RepositoryNotFoundError as error:
        if error.response.status_code != 404:  # a stale token, with which nothing is found, or no access
            raise
        patiently(partial(api.create_repo, repo, repo_type=kind, private=not public, exist_ok=True))
        main = patiently(info)
    if revision is None:
        return main
    refs = patiently(partial(api.list_repo_refs, repo, repo_type=kind))
    if revision in {tag.name for tag in refs.tags}:
        raise HubError(f"{revision} is a tag of the {kind} {repo}, which can't be pushed to: give a branch as the revision")
    if revision not in {branch.name for branch in refs.branches}:
        patiently(partial(api.create_branch, repo, branch=revision, repo_type=kind, exist_ok=True))
    return patiently(partial(info, revision=revision))


def _older(api: HfApi, repo: str, kind: str, commit: str, there: Iterable[str]) -> list[str]:
    """The files of older pushes; a repository of something else is refused, whose files would be overwritten."""
    if not (others := sorted(set(there) - {".gitattributes"})):
        return []
    front = _read(api, repo, kind, commit, "README.md") if "README.md" in others else {}
    if not ours(front):
        named = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        told = f"the {kind} {repo} has files that are not of hfcf ({named}), and its card has no tag hfcf"
        raise HubError(f"{told}: push to another name, or empty it first")
    try:
        run = _read(api, repo, kind, commit, "run.json") if "run.json" in others else {}
    except HubError:  # the card names the rows, too; and the new one replaces it
        run = {}
    return written(there, kind, front, run)


def _read(api: HfApi, repo: str, kind: str, commit: str, path: str) -> dict[str, Any]:
    # Not through the cache: when the Hub fails that tells of files that it lacks.
    def content() -> bytes:
        url = hf_hub_url(repo, path, repo_type=kind, revision=commit, endpoint=api.endpoint)
        answer = get_session().get(url, headers=build_hf_headers(token=api.token))
        hf_raise_for_status(answer)
        return bytes(answer.content)

    return parsed(path, patiently(content), f"the {kind} {repo}")


def _commit(api: HfApi, repo: str, kind: str, operations: list[Any], revision: str | None, parent: str, message: str) -> str:
    adds = [operation for operation in operations if isinstance(operation, CommitOperationAdd)]
    at: dict[str, Any] = {"repo_type": kind, "revision": revision}
    patiently(lambda: api.preupload_lfs_files(repo, adds, free_memory=False, **at))
    # The Hub's client would leave these out of the commit, and say nothing of it.
    if ignored := [operation.path_in_repo for operation in adds if operation._should_ignore]:
        raise HubError(f"the {kind} {repo} has a .gitignore that shuts out {ignored[0]}: take that out of it, and run this again")
    return patiently(lambda: api.create_commit(repo, operations, parent_commit=parent, commit_message=message, **at)).oid


def _operations(new: Mapping[str, bytes | Path], sent: Iterable[str], removed: Iterable[str]) -> list[Any]:
    adds = [CommitOperationAdd(path, new[path]) for path in sent]
    return [*adds, *(CommitOperationDelete(path, is_folder=False) for path in removed)]
