"""Artifacts: what a system fitted on a whole set, as content-addressed JSON files in the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from hfcf.core.paths import cache_dir


def save_artifact(content: Mapping[str, Any]) -> str:
    """Write an artifact as sorted JSON under the hash of its content; return the hash."""
    data = json.dumps(content, sort_keys=True, ensure_ascii=False, indent=0).encode()
    sha = hashlib.sha256(data).hexdigest()
    path = artifact_path(sha)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{Random().getrandbits(64):x}")
        part.write_bytes(data)
        part.replace(path)
    return sha


def read_artifact(sha: str, cure: str) -> dict[str, Any]:
    """Read what `save_artifact` wrote.

    Args:
        sha: the artifact's hash.
        cure: what to do if the file no longer exists: "run race.fit(ds) again".

    Raises:
        FileNotFoundError: the file no longer exists.

    >>> read_artifact(save_artifact({"relations": ["in"]}), "run ccg.fit(ds) again")
    {'relations': ['in']}
    """
    path = artifact_path(sha)
    if not path.is_file():
        raise FileNotFoundError(f"the fitted file {path} does not exist any more: {cure}")
    return json.loads(path.read_text(encoding="utf-8"))


def artifact_path(sha: str) -> Path:
    """Return the path of the artifact with this hash."""
    return cache_dir() / "fitted" / f"{sha}.json"
