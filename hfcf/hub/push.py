"""`hfcf push`: make a repository of the Hub equal to a finished folder, in one commit.

`HfApi.upload_folder` may make several commits and sends the card as it is, while a pushed card names its repository. So the
operations are listed here, and `HfApi.create_commit` uploads what the repository lacks and commits it: the head is the old state
or the new state, whatever fails. A push that failed is run again; it uploads nothing twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token
from huggingface_hub.errors import RepositoryNotFoundError
from pyarrow.parquet import ParquetFile

from hfcf.core.pretrained import PICKLES
from hfcf.core.redact import environment_secrets, mask
from hfcf.hub.errors import FAILURES, LOGIN, OFFLINE, HubError, explain
from hfcf.hub.folder import ROWS, content_hash
from hfcf.hub.run_folder import check_name, data_files, is_own_card, list_tags, parse_file

FILES = {
    "dataset": re.compile(rf"README\.md|run\.json|recipe\.yaml|report\.html|data/([^/]+/)?{ROWS}"),
    "model": re.compile(
        r"README\.md|scores\.json|(generation_|adapter_)?config\.json|(rbert|graph|explainer)\.safetensors|explainer\.json"
        r"|open_domain\.json|seen\.npy"
        r"|(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?"
        r"|tokenizer(_config)?\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(txt|json)|merges\.txt|bpe\.codes"
        r"|(spiece|spm|tokenizer|sentencepiece(\.bpe)?)\.model|chat_template\.(jinja|json)"
    ),
}
"""Files to send of each kind of folder; a push removes files of such names that the folder no longer has."""
_REQUIRED = ("run.json", "recipe.yaml", "report.html")
"""Files of a folder that `hfcf run` finished."""
PLACEHOLDER = "PATH_OR_REPOSITORY"
"""The place of its data that a card names; a pushed card has the repository's name there."""


@dataclass(frozen=True)
class Contents:
    """The part of a folder that belongs in a repository; paths are relative to the folder."""

    root: Path
    kind: str
    """"dataset" or "model"."""
    files: tuple[str, ...]
    """Paths to send."""
    left_out: tuple[str, ...]
    front: Mapping[str, Any]
    """The card's front matter."""


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
    changed: bool
    """Whether there was something to commit."""
    removed: tuple[str, ...]
    """Files of an older push that the commit removed."""


def plan_push(folder: str | Path, repo: str, token: str | None = None) -> Contents:
    """Return what `push` would send, with the same arguments. Only the folder is read.

    Raises:
        HubError: the name is invalid, the folder can't be pushed (see `read_contents`), or a file contains a token.

    >>> plan_push(".", "a/b/c")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: 'a/b/c' is not a repository name: write NAMESPACE/NAME
    """
    check_name(repo)
    contents = read_contents(folder)
    refuse_secrets(contents, token)
    return contents


def push(
    folder: str | Path, repo: str, *, public: bool = False, revision: str | None = None, token: str | None = None
) -> PushReport:
    """Make a repository of the Hub equal to a folder: a dataset repository for a run's, a model repository for a training's.

    A folder that did not change since the last push makes no commit. A changed folder makes one commit, which also removes the
    files of the older push that the folder no longer has. Files that this library did not write stay as they are, and a repository
    of something else is refused.

    Args:
        folder: of `hfcf run`, of a corpus's build, or of `hfcf train`.
        repo: the repository's name.
        public: create the repository public, or push to one that is; by default it is private.
        revision: a branch, which is created if there is none of that name; by default the main branch.
        token: by default the token of HF_TOKEN or `hf auth login`.

    Raises:
        HubError: the folder can't be pushed, or the Hub refused; the message has the cure.
    """
    secret = require_token(token)
    contents = plan_push(folder, repo, secret)
    try:
        return _push(HfApi(token=secret), contents, repo, public=public, revision=revision)
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


def _push(api: HfApi, contents: Contents, repo: str, *, public: bool, revision: str | None) -> PushReport:
    """Push from what the repository has now; run again after the answer to a commit was lost, it finds that nothing differs."""
    kind = contents.kind
    if "/" not in repo:
        repo = f"{api.whoami()['name']}/{repo}"
    try:
        info = api.repo_info(repo, repo_type=kind)
    except RepositoryNotFoundError as error:
        if error.response.status_code != 404:  # a stale token, which finds nothing, or no access
            raise
        api.create_repo(repo, repo_type=kind, private=not public, exist_ok=True)
        info = api.repo_info(repo, repo_type=kind)
    if not info.private and not public:
        raise HubError(f"the {kind} {repo} is public: push with --public, or make it private in its settings first")
    if revision:
        api.create_branch(repo, branch=revision, repo_type=kind, exist_ok=True)
    head = api.repo_info(repo, repo_type=kind, revision=revision).sha
    remote = api.list_repo_files(repo, repo_type=kind, revision=head)
    _refuse_other(api, repo, kind, head, remote)
    card = (contents.root / "README.md").read_bytes().replace(PLACEHOLDER.encode(), repo.encode())
    removed = tuple(path for path in select_files(remote, kind) if path not in contents.files)
    operations: list[Any] = [
        *(CommitOperationAdd(path, card if path == "README.md" else contents.root / path) for path in contents.files),
        *(CommitOperationDelete(path, is_folder=False) for path in removed),
    ]
    commit = api.create_commit(
        repo, operations, repo_type=kind, revision=revision, parent_commit=head, commit_message="Upload with hfcf"
    )
    url = f"{api.endpoint}/{constants.REPO_TYPES_URL_PREFIXES.get(kind, '')}{repo}"
    return PushReport(repo, kind, url, str(commit.oid), bool(info.private), commit.oid != head, removed)


def _refuse_other(api: HfApi, repo: str, kind: str, head: str | None, remote: Iterable[str]) -> None:
    """Refuse a repository of something else, whose files would be overwritten."""
    paths = sorted(set(remote) - {".gitattributes"})
    if paths and not ("README.md" in paths and is_own_card(
        parse_file(Path(api.hf_hub_download(repo, "README.md", repo_type=kind, revision=head)))
    )):  # fmt: skip
        raise HubError(
            f"the {kind} {repo} has files that hfcf did not write ({', '.join(paths[:3])}), and its card has no tag hfcf: "
            "push to another name, or empty it first"
        )


def read_contents(folder: str | Path) -> Contents:
    """Read which files of a folder of `hfcf run` (or of a corpus's build) or `hfcf train` belong in a repository.

    Raises:
        HubError: the folder is not finished, its rows may not be republished, or a file may run code when it is read.
    """
    root = Path(folder)
    if not root.is_dir():
        raise HubError(f"there is no folder {root}")
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    if "README.md" not in paths:
        raise HubError(f"{root} has no README.md: it is not a finished result of hfcf run or hfcf train; run that again")
    front = parse_file(root / "README.md")
    weights = any(path.endswith(".safetensors") and "/" not in path for path in paths)
    if front.get("configs") and weights:
        raise HubError(f"{root} holds both a counterfactual set and a model: push each from its own folder")
    if front.get("configs"):
        named = _check_set(root, paths, front)
        files = [path for path in select_files(paths, "dataset") if path in named or not path.startswith("data/")]
        return Contents(root, "dataset", tuple(files), tuple(path for path in paths if path not in files), front)
    if not weights or "scores.json" not in paths:
        raise HubError(
            f"{root} is not a finished folder of hfcf run or hfcf train: the card of a set names its files, the weights of a model "
            "are safetensors, and training writes scores.json last"
        )
    files = select_files(paths, "model")
    for path in paths:
        if Path(path).suffix.lower() in PICKLES and "/" not in path:
            raise HubError(f"{root / path} may run code when it is read: store the weights as safetensors, and remove this file")
    return Contents(root, "model", tuple(files), tuple(path for path in paths if path not in files), front)


def select_files(paths: Iterable[str], kind: str) -> list[str]:
    """Select the paths of a folder or repository that this library writes."""
    return [path for path in sorted(paths) if FILES[kind].fullmatch(path)]


def _check_set(root: Path, paths: Iterable[str], front: Mapping[str, Any]) -> set[str]:
    """Return the files of a set's rows; raise unless all that its card names are there and whole."""
    run = parse_file(root / "run.json") if (root / "run.json").is_file() else {}
    corpus = run.get("corpus")
    if forbids_republishing(front, corpus if isinstance(corpus, str) else None):
        raise HubError(f"{root}: the licence of its corpus forbids to republish these rows: keep them local")
    cure = "the run did not finish: run it again, which repeats no model call"
    configs = data_files(front)
    named = {path for splits in configs.values() for paths in splits.values() for path in paths}
    if len(configs) != len(front["configs"]) or not all(map(FILES["dataset"].fullmatch, named)):
        raise HubError(f"{root}: README.md does not name the files of its rows as hfcf does: restore its configs, or run again")
    required = _REQUIRED if any(tag.startswith("hfcf-") for tag in list_tags(front)) else ()
    if missing := [path for path in [*sorted(named), *required] if path not in paths]:
        raise HubError(f"{root}: {missing[0]} is missing; {cure}")
    if damaged := [path for path in sorted(named) if content_hash(root / path) not in path]:
        raise HubError(f"{root}: {damaged[0]} is damaged: its contents do not have the hash in its name; {cure}")
    return named


def forbids_republishing(front: Mapping[str, Any], corpus: str | None) -> bool:
    """Say whether the licence of a set's corpus forbids to republish its rows, by the card or by the corpus's own entry."""
    if front.get("republish", True) is False:
        return True
    from hfcf.corpora import builder_class, names

    return corpus in names() and not builder_class(str(corpus)).INFO.republish


_TEXT = (".md", ".json", ".yaml", ".html", ".txt", ".jinja", ".codes")
_TOKEN = re.compile(
    r"hf_[A-Za-z0-9]{30,}|hf_(?:oauth|jwt)_[\w.-]{20,}|api_(?:org_)?[A-Za-z0-9]{30,}"
    r"|(?<!(?<!\\)[A-Za-z0-9])(?:sk-(?:[a-z]{2,8}-)?[A-Za-z0-9_]{32,}|gh[opsur]_[A-Za-z0-9]{36}|github_pat_\w{40,}|AKIA[A-Z0-9]{16}"
    r"|AIza[\w-]{35}|xox[abprs]-[\w-]{20,})|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----",
    re.ASCII,
)
"""Tokens of the Hub, whatever is before them, and keys of OpenAI and similar keys, GitHub, AWS, Google and Slack.

Keys are found where a word begins, or after an escape such as \\n."""


def refuse_secrets(contents: Contents, token: str | None = None) -> None:
    """Raise `HubError` when a text or a row holds a token of the Hub, a key of a usual form, `token`, or another secret."""
    secrets = [token or "", *environment_secrets()]
    for path in contents.files:
        for where, text in _read_texts(contents.root / path):
            if _TOKEN.search(text) or mask(text, secrets) != text:
                raise HubError(f"{where} contains a token or a key: remove it, and replace the token at once")


def _read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a file holds as text, with its place."""
    if path.name.endswith(_TEXT):
        yield str(path), path.read_bytes().replace(b"\0", b"").decode("utf-8", "replace")  # UTF-16 is ASCII with zeros between
    elif path.suffix == ".parquet":
        file = ParquetFile(path)
        for group in range(file.num_row_groups):
            for name, column in file.read_row_group(group).to_pydict().items():
                yield f"{path}, column {name},", json.dumps(column, default=str)
