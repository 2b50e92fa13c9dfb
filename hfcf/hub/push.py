"""`hfcf push`: a finished folder as a repository of the Hub.

One commit brings a repository from what it has to what the folder has: large files go up first and belong to no revision until
that commit names them, so whatever fails, the head is the old state or the new one. Everything is decided from what the repository
has at that moment, so a push that failed is simply done again: what went up already is not sent twice, and where nothing differs
there is no commit. Nor is there a second one when only the answer to the first was lost: the repetition has an old parent, which
is a conflict, and what is read anew has all that the folder has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile

from hfcf.hub.check_card import REPOSITORY, check_card
from hfcf.hub.contents import Contents, contents, written
from hfcf.hub.errors import FAILURES, LOGIN, OFFLINE, HubError, patiently, told

PLACEHOLDER = "PATH_OR_REPOSITORY"
"""What stands in a card for where its data lies; a pushed card has the repository's name there."""
_TEXT = (".md", ".json", ".yaml", ".html", ".txt", ".jinja")


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
        HubError: see `contents`; the name is none; or the Hub would not understand the card.

    >>> plan(".", "a/b/c")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: 'a/b/c' is no repository's name: write NAMESPACE/NAME
    """
    check_name(repo)
    found = contents(folder)
    _check_card(found)
    sizes = {path: _size(file) for path, file in _files(found, repo).items()}
    return Plan(repo, found.kind, sizes, found.left_out)


def push(folder: str | Path, repo: str, *, public: bool = False, revision: str | None = None, token: str | None = None) -> Pushed:
    """Make a repository of the Hub what a folder is: a dataset repository of a run's, a model repository of a training's.

    Pushed again, a folder that did not change makes no commit; one that did makes one, which also removes the files of the older
    push that it has no more. Files that this library does not write are left as they are.

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
    found = contents(folder)
    _check_card(found)
    secret = ready(token)
    _no_token_in(found, secret)
    api = HfApi(token=secret)
    try:
        return patiently(lambda: _attempt(api, found, repo, public=public, revision=revision), conflicts=True)
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


def _attempt(api: HfApi, found: Contents, repo: str, *, public: bool, revision: str | None) -> Pushed:
    if "/" not in repo:
        repo = f"{patiently(api.whoami)['name']}/{repo}"
    info = _repository(api, repo, found.kind, public, revision)
    if not info.private and not public:
        raise HubError(f"the {found.kind} {repo} is public: push with --public, or make it private in its settings first")
    listed = partial(api.list_repo_tree, repo, recursive=True, revision=info.sha, repo_type=found.kind)
    there = {entry.path: entry for entry in patiently(lambda: list(listed())) if isinstance(entry, RepoFile)}
    new = _files(found, repo)
    sent = tuple(path for path, file in new.items() if path not in there or not _same(file, there[path]))
    removed = tuple(path for path in sorted(there) if path not in new and written(path, found.kind))
    commit = str(info.sha)
    if sent or removed:
        message = "Update with hfcf" if len(there) > 1 else "Upload with hfcf"
        options = {"repo_type": found.kind, "revision": revision, "parent_commit": info.sha, "commit_message": message}
        # Operations anew each time: they remember what became of them.
        commit = patiently(lambda: api.create_commit(repo, _operations(new, sent, removed), **options)).oid
    url = f"{api.endpoint}/{constants.REPO_TYPES_URL_PREFIXES.get(found.kind, '')}{repo}"
    return Pushed(repo, found.kind, url, commit, bool(info.private), sent, removed)


def _repository(api: HfApi, repo: str, kind: str, public: bool, revision: str | None) -> Any:
    """What the Hub says of the repository and of the branch's head; both are made when they are not there."""
    info = partial(api.repo_info, repo, repo_type=kind, revision=revision)
    branch = partial(api.create_branch, repo, branch=str(revision), repo_type=kind, exist_ok=True)
    try:
        return patiently(info)
    except RevisionNotFoundError:
        patiently(branch)
    except RepositoryNotFoundError as error:
        if error.response.status_code == 401:  # a stale token, with which nothing is found
            raise
        other = "model" if kind == "dataset" else "dataset"
        if patiently(partial(api.repo_exists, repo, repo_type=other)):
            raise HubError(f"{repo} is a {other} repository, and the folder holds a {kind}: give another name") from None
        patiently(partial(api.create_repo, repo, repo_type=kind, private=not public, exist_ok=True))
        if revision is not None:
            patiently(branch)
    return patiently(info)


def _operations(new: Mapping[str, bytes | Path], sent: Iterable[str], removed: Iterable[str]) -> list[Any]:
    adds = [CommitOperationAdd(path, new[path]) for path in sent]
    return [*adds, *(CommitOperationDelete(path, is_folder=False) for path in removed)]


def _files(found: Contents, repo: str) -> dict[str, bytes | Path]:
    """What is sent, by its path: files as they are, and the card, which names the repository that it lies in."""
    card = (found.root / "README.md").read_bytes().replace(PLACEHOLDER.encode(), repo.encode())
    return {path: card if path == "README.md" else found.root / path for path in found.files}


def _size(file: bytes | Path) -> int:
    return len(file) if isinstance(file, bytes) else file.stat().st_size


def _same(file: bytes | Path, remote: RepoFile) -> bool:
    """Whether the repository has these very bytes: large files are known there by SHA-256, others by what git calls them."""
    if remote.size != _size(file):
        return False
    if remote.lfs is None:
        content = file if isinstance(file, bytes) else file.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == remote.blob_id
    if isinstance(file, bytes):
        return hashlib.sha256(file).hexdigest() == remote.lfs.sha256
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == remote.lfs.sha256


def _check_card(found: Contents) -> None:
    if faults := check_card(found.front, found.kind):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise HubError(f"{found.root / 'README.md'}: the Hub would not understand its front matter: {faults[0]}{more}")


def _no_token_in(found: Contents, secret: str) -> None:
    for path in found.files:
        if path.endswith(_TEXT) and secret.encode() in (found.root / path).read_bytes():
            raise HubError(f"{found.root / path} holds your token: take it out, and replace the token at once")
