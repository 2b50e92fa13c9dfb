"""The files of a push: what is sent under which path, whether a repository has the same, and what no file of them may hold."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from huggingface_hub.hf_api import RepoFile

from hfcf.hub.check_card import check_card
from hfcf.hub.contents import Contents
from hfcf.hub.errors import HubError

PLACEHOLDER = "PATH_OR_REPOSITORY"
"""What stands in a card for where its data lies; a pushed card has the repository's name there."""
_TEXT = (".md", ".json", ".yaml", ".html", ".txt", ".jinja", ".codes")
_TOKEN = re.compile(rb"\bhf_[A-Za-z0-9]{30,}\b")


def files_of(found: Contents, repo: str) -> dict[str, bytes | Path]:
    """What is sent, by its path: files as they are, and the card, which names the repository that it lies in."""
    card = (found.root / "README.md").read_bytes().replace(PLACEHOLDER.encode(), repo.encode())
    return {path: card if path == "README.md" else found.root / path for path in found.files}


def size(file: bytes | Path) -> int:
    """How many bytes it has."""
    return len(file) if isinstance(file, bytes) else file.stat().st_size


def same(file: bytes | Path, remote: RepoFile) -> bool:
    """Whether the repository has these very bytes: large files are known there by SHA-256, others by what git calls them."""
    if remote.size != size(file):
        return False
    if remote.lfs is None:
        content = file if isinstance(file, bytes) else file.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == remote.blob_id
    if isinstance(file, bytes):
        return hashlib.sha256(file).hexdigest() == remote.lfs.sha256
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == remote.lfs.sha256


def check_fit(found: Contents, secret: str | None = None) -> None:
    """Raise when the Hub would not understand the card, or a text that is sent holds a token.

    Args:
        found: what is sent.
        secret: the token in use, whatever it looks like.

    Raises:
        HubError: with the file's name, and never the token.
    """
    if faults := check_card(found.front, found.kind):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise HubError(f"{found.root / 'README.md'}: the Hub would not understand its front matter: {faults[0]}{more}")
    for path in found.files:
        if path.endswith(_TEXT):
            text = (found.root / path).read_bytes()
            if _TOKEN.search(text) or (secret and secret.encode() in text):
                raise HubError(f"{found.root / path} holds a token of the Hub: take it out, and replace the token at once")
