"""`hfcf push`: make a repository of the Hub equal to a finished folder, in one commit.

Large files are uploaded first and belong to no revision until the commit names them. So the head is the old state or the new
state, whatever fails. Each attempt starts from what the repository has at that moment. A push that failed is run again; it uploads
nothing twice, and makes no commit where nothing differs. Sometimes only the answer to a commit is lost. Then the repeated commit
has an outdated parent and conflicts, and the next attempt finds that nothing differs.

`HfApi.upload_folder` does not keep these promises. With hf_xet it makes several commits of many files, and splits a commit that
failed, so that the head can be half of a folder. It silently leaves out files that a `.gitignore` of the repository ignores. It
sends the card as it is, while a pushed card names its repository. `preupload_lfs_files` and `create_commit` keep the promises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token, hf_hub_url
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import HFValidationError, build_hf_headers, get_session, hf_raise_for_status, validate_repo_id
from huggingface_hub.utils.sha import git_hash
from pyarrow.parquet import ParquetFile

from hfcf.core.redact import environment_secrets, mask
from hfcf.hub.contents import Contents, is_own_card, parse_file, read_contents, select_own
from hfcf.hub.errors import FAILURES, LOGIN, OFFLINE, HubError, explain, retry

Changes = tuple[tuple[str, ...], tuple[str, ...]]
"""Paths of a commit: the paths that it sends and the paths that it removes."""


@dataclass(frozen=True)
class Plan:
    """What a push would send, computed without a request."""

    repo: str
    kind: str
    """"dataset" or "model"."""
    files: Mapping[str, int]
    """{path in the repository: bytes}."""
    left_out: tuple[str, ...]
    """Files of the folder that are not sent."""


@dataclass(frozen=True)
class PushReport:
    """What a push did."""

    repo: str
    """The repository's name, with its namespace."""
    kind: str
    """"dataset" or "model"."""
    url: str
    commit: str
    """The head after the push."""
    private: bool
    sent: tuple[str, ...]
    """Files of the commit; none when the repository had them all."""
    removed: tuple[str, ...]
    """Files of an older push that the commit removed."""


def plan(folder: str | Path, repo: str) -> Plan:
    """List what `push` would send, with the same arguments. Only the folder is read.

    Raises:
        HubError: the name is invalid, the folder can't be pushed (see `read_contents`), or a file contains a token.

    >>> plan(".", "a/b/c")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: 'a/b/c' is not a repository name: write NAMESPACE/NAME
    """
    check_name(repo)
    contents = read_contents(folder)
    check_files(contents)
    sizes = {
        path: len(file) if isinstance(file, bytes) else file.stat().st_size for path, file in prepare_files(contents, repo).items()
    }
    return Plan(repo, contents.kind, sizes, contents.left_out)


def push(
    folder: str | Path, repo: str, *, public: bool = False, revision: str | None = None, token: str | None = None
) -> PushReport:
    """Make a repository of the Hub equal to a folder: a dataset repository for a run's, a model repository for a training's.

    A folder that did not change since the last push makes no commit. A changed folder makes one commit, which also removes the
    files of the older push that the folder no longer has. Files that this library did not write stay as they are, and a repository
    of something else is refused.
    """
    check_name(repo)
    if revision is not None and re.fullmatch("[0-9a-f]{40}", revision):
        raise HubError(f"{revision} is a commit, which can't change: give a branch as the revision")
    contents = read_contents(folder)
    secret = require_token(token)
    check_files(contents, secret)
    api = HfApi(token=secret)
    previous: list[Changes] = []
    try:
        return retry(lambda: _push_once(api, contents, repo, previous, public=public, revision=revision), conflicts=True)
    except HubError:
        raise
    except FAILURES as error:
        failure = explain(error, f"the {contents.kind} {repo}", secret)
    # Raised outside the handler: the request that failed carries the token, and the address of an upload is signed.
    raise failure


def require_token(token: str | None = None) -> str:
    """Return the token that a push uses, when this machine can push at all."""
    if constants.HF_HUB_OFFLINE:
        raise HubError(OFFLINE)
    if not (secret := token or get_token()):
        raise HubError(f"the Hub needs a token to write: {LOGIN}")
    return secret


def check_name(repo: str) -> None:
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise HubError(f"{repo!r} is not a repository name: write NAMESPACE/NAME") from error


def _push_once(
    api: HfApi, contents: Contents, repo: str, previous: list[Changes], *, public: bool, revision: str | None
) -> PushReport:
    """Push from what the repository has now. `previous` holds the commit of the last attempt, and receives the new commit."""
    if "/" not in repo:
        repo = f"{retry(api.whoami)['name']}/{repo}"
    info = _get_repository(api, repo, contents.kind, public, revision)
    if not info.private and not public:
        raise HubError(f"the {contents.kind} {repo} is public: push with --public, or make it private in its settings first")
    tree = partial(api.list_repo_tree, repo, recursive=True, revision=info.sha, repo_type=contents.kind)
    remote = {entry.path: entry for entry in retry(lambda: list(tree())) if isinstance(entry, RepoFile)}
    older = _list_older_files(api, repo, contents.kind, info.sha, remote)
    local = {path: CommitOperationAdd(path, file) for path, file in prepare_files(contents, repo).items()}
    sent = tuple(path for path, addition in local.items() if path not in remote or not is_same(addition, remote[path]))
    removed = tuple(path for path in older if path not in local)
    commit = str(info.sha)
    if sent or removed:
        previous[:] = [(sent, removed)]
        message = "Update with hfcf" if older else "Upload with hfcf"
        deletions = [CommitOperationDelete(path, is_folder=False) for path in removed]
        branch = {"repo_type": contents.kind, "revision": revision}
        commit = _commit(api, repo, branch, [local[path] for path in sent], deletions, commit, message)
    elif previous:  # that commit was made, and only the answer to it was lost
        sent, removed = previous[0]
    url = f"{api.endpoint}/{constants.REPO_TYPES_URL_PREFIXES.get(contents.kind, '')}{repo}"
    return PushReport(repo, contents.kind, url, commit, bool(info.private), sent, removed)


def _get_repository(api: HfApi, repo: str, kind: str, public: bool, revision: str | None) -> Any:
    """Return the Hub's information on the branch's head; create the repository and the branch when they don't exist."""
    info = partial(api.repo_info, repo, repo_type=kind)
    try:
        main = retry(info)
    except RepositoryNotFoundError as error:
        if error.response.status_code != 404:  # a stale token, which finds nothing, or no access
            raise
        retry(partial(api.create_repo, repo, repo_type=kind, private=not public, exist_ok=True))
        main = retry(info)
    if revision is None:
        return main
    refs = retry(partial(api.list_repo_refs, repo, repo_type=kind))
    if revision in {tag.name for tag in refs.tags}:
        raise HubError(f"{revision} is a tag of the {kind} {repo}, which can't be pushed to: give a branch as the revision")
    if revision not in {branch.name for branch in refs.branches}:
        retry(partial(api.create_branch, repo, branch=revision, repo_type=kind, exist_ok=True))
    return retry(partial(info, revision=revision))


def _list_older_files(api: HfApi, repo: str, kind: str, commit: str, remote: Iterable[str]) -> list[str]:
    """List the files of older pushes; refuse a repository of something else, whose files would be overwritten."""
    if not (paths := sorted(set(remote) - {".gitattributes"})):
        return []
    front = _download(api, repo, kind, commit, "README.md") if "README.md" in paths else {}
    if not is_own_card(front):
        examples = ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
        raise HubError(
            f"the {kind} {repo} has files that hfcf did not write ({examples}), and its card has no tag hfcf: "
            "push to another name, or empty it first"
        )
    try:
        run = _download(api, repo, kind, commit, "run.json") if "run.json" in paths else {}
    except HubError:  # the card also names the rows, and the new file replaces this one
        run = {}
    return select_own(remote, kind, front, run)


def _download(api: HfApi, repo: str, kind: str, commit: str, path: str) -> dict[str, Any]:
    # Past the cache, which after a failure of the Hub records files as missing.
    def content() -> bytes:
        url = hf_hub_url(repo, path, repo_type=kind, revision=commit, endpoint=api.endpoint)
        answer = get_session().get(url, headers=build_hf_headers(token=api.token))
        hf_raise_for_status(answer)
        return bytes(answer.content)

    return parse_file(path, retry(content), f"the {kind} {repo}")


def _commit(
    api: HfApi, repo: str, branch: dict[str, Any], additions: list[CommitOperationAdd], deletions: list[CommitOperationDelete],
    parent: str, message: str,
) -> str:  # fmt: skip
    # Without these rules, `create_commit` silently leaves out the files that a .gitignore of the repository ignores.
    retry(lambda: api.preupload_lfs_files(repo, additions, free_memory=False, gitignore_content=NO_RULES, **branch))
    create = partial(api.create_commit, repo, [*additions, *deletions], parent_commit=parent, commit_message=message, **branch)
    return str(retry(create).oid)


NO_RULES = "# nothing is ignored\n"
PLACEHOLDER = "PATH_OR_REPOSITORY"
"""The place of its data that a card names; a pushed card has the repository's name there."""
_TEXT = (".md", ".json", ".yaml", ".html", ".txt", ".jinja", ".codes")
_TOKEN = re.compile(
    r"hf_[A-Za-z0-9]{30,}|hf_(?:oauth|jwt)_[\w.-]{20,}|api_(?:org_)?[A-Za-z0-9]{30,}"
    r"|(?<!(?<!\\)[A-Za-z0-9])(?:sk-(?:[a-z]{2,8}-)?[A-Za-z0-9_]{32,}|gh[opsur]_[A-Za-z0-9]{36}|github_pat_\w{40,}|AKIA[A-Z0-9]{16}"
    r"|AIza[\w-]{35}|xox[abprs]-[\w-]{20,})|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----",
    re.ASCII,
)
"""Tokens of the Hub, whatever is before them, and keys of OpenAI and similar keys, GitHub, AWS, Google and Slack.

Keys are found where a word begins, or after an escape such as \\n."""


def prepare_files(contents: Contents, repo: str) -> dict[str, bytes | Path]:
    """Map each path in the repository to its content: files as they are, and a card that names the repository."""
    card = (contents.root / "README.md").read_bytes().replace(PLACEHOLDER.encode(), repo.encode())
    return {path: card if path == "README.md" else contents.root / path for path in contents.files}


def is_same(addition: CommitOperationAdd, remote: RepoFile) -> bool:
    """Say whether the repository has the same bytes: the Hub identifies large files by SHA-256, other files by git's hash."""
    if remote.size != addition.upload_info.size:
        return False
    if remote.lfs is not None:
        return addition.upload_info.sha256.hex() == remote.lfs.sha256
    with addition.as_file() as file:
        return git_hash(file.read()) == remote.blob_id


def check_files(contents: Contents, token: str | None = None) -> None:
    """Raise `HubError` when a text or a row holds a token of the Hub, a key of a usual form, `token`, or another secret."""
    secrets = [token or "", *environment_secrets()]
    for path in contents.files:
        for where, content in _read_texts(contents.root / path):
            text = content.replace(b"\0", b"").decode("utf-8", "replace")  # UTF-16 is ASCII with zeros between
            if _TOKEN.search(text) or mask(text, secrets) != text:
                raise HubError(f"{where} contains a token or a key: remove it, and replace the token at once")


def _read_texts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what a file holds as text, with its place."""
    if path.name.endswith(_TEXT):
        yield str(path), path.read_bytes()
    elif path.suffix == ".parquet":
        file = ParquetFile(path)
        for group in range(file.num_row_groups):
            for name, column in file.read_row_group(group).to_pydict().items():
                yield f"{path}, column {name},", json.dumps(column, default=str).encode()
