"""Artifacts: what a system learned from a whole set, as content-addressed JSON files in the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfcf.core.paths import cache_dir, quarantine, replace_file


def save_artifact(content: Mapping[str, Any]) -> str:
    """Write an artifact as sorted JSON under the hash of its content; return the hash."""
    data = json.dumps(content, sort_keys=True, ensure_ascii=False, indent=0).encode()
    sha = hashlib.sha256(data).hexdigest()
    path = artifact_path(sha)
    if _read(path, sha) is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as part:
            part.write_bytes(data)
    return sha


def _read(path: Path, sha: str) -> bytes | None:
    """Read a file whose name is its hash; return None if there is none. A file with other contents is quarantined."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(data).hexdigest() != sha:
        quarantine(path, "its contents do not match the hash in its name")
        return None
    return data


def read_artifact(sha: str, cure: str) -> dict[str, Any]:
    """Read what `save_artifact` wrote."""
    path = artifact_path(sha)
    if (data := _read(path, sha)) is None:
        raise FileNotFoundError(f"the fitted file {path} no longer exists: {cure}")
    return json.loads(data)


def artifact_path(sha: str) -> Path:
    """Return the path of the artifact with this hash."""
    return cache_dir() / "fitted" / f"{sha}.json"
