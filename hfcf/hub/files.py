"""The files of a push: the content of each, whether a repository has the same, and what must not be in them."""

from __future__ import annotations

import re
from pathlib import Path

from huggingface_hub import CommitOperationAdd
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.sha import git_hash

from hfcf.hub.check_card import check_card
from hfcf.hub.contents import Contents
from hfcf.hub.errors import HubError

PLACEHOLDER = "PATH_OR_REPOSITORY"
"""What a card names as the place of its data; a pushed card has the repository's name there."""
_TEXT = (".md", ".json", ".yaml", ".html", ".txt", ".jinja", ".codes")
_TOKEN = re.compile(rb"\bhf_[A-Za-z0-9]{30,}\b")


def prepare_files(contents: Contents, repo: str) -> dict[str, bytes | Path]:
    """Map each path in the repository to its content: files as they are, and a card that names the repository."""
    card = (contents.root / "README.md").read_bytes().replace(PLACEHOLDER.encode(), repo.encode())
    return {path: card if path == "README.md" else contents.root / path for path in contents.files}


def is_same(addition: CommitOperationAdd, remote: RepoFile) -> bool:
    """Say whether the repository has the same bytes: the Hub knows large files by SHA-256, others by git's hash."""
    if remote.size != addition.upload_info.size:
        return False
    if remote.lfs is not None:
        return addition.upload_info.sha256.hex() == remote.lfs.sha256
    with addition.as_file() as file:
        return git_hash(file.read()) == remote.blob_id


def check_files(contents: Contents, token: str | None = None) -> None:
    """Raise `HubError` when the Hub would not understand the card, or a text holds one of its tokens or `token`.

    The message names the file, and never the token.
    """
    if faults := check_card(contents.front, contents.kind):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise HubError(f"{contents.root / 'README.md'}: the Hub would not understand its front matter: {faults[0]}{more}")
    for path in contents.files:
        if path.endswith(_TEXT):
            text = (contents.root / path).read_bytes()
            if _TOKEN.search(text) or (token and token.encode() in text):
                raise HubError(f"{contents.root / path} contains a Hub token: remove it, and replace the token at once")
