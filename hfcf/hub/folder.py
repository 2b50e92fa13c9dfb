"""Write a dataset repository as a folder: Parquet by configuration and split, and the card's list of the exact files.

Each file's name holds the hash of its contents. `load_dataset` keys its cache by the card's patterns, so it would return old rows
for a rewritten file of the same name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.paths import part_name

ROWS = r"\w+(\.\w+)*-[0-9a-f]{16}\.parquet"
"""The file names of `write_parquet`; in file names of `datasets`, other parts follow the split."""
_OWN = re.compile(rf"{ROWS}|\.\w+(\.\w+)*\.part")
"""These names, and the names of files that are being written."""


def write_parquet(ds: Dataset, folder: Path, split: str) -> Path:
    """Write a split as `folder/<split>-<hash>.parquet`; create the folder when it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    # A name for this process alone: two processes that write the same split at once must not mix their rows.
    part = folder / part_name(split)
    try:
        ds.to_parquet(str(part))
        return part.replace(folder / f"{split}-{content_hash(part)}.parquet")
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def content_hash(path: Path) -> str:
    """Return the hash of a file's contents that `write_parquet` puts into its name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def remove_others(data: Path, written: Iterable[Path]) -> None:
    """Remove the files of an older run, which no card names any more, and the partial files of a run that was killed."""
    current = set(written)
    for path in list(data.rglob("*")):
        if path not in current and _OWN.fullmatch(path.name) and path.is_file():
            path.unlink()


def configs(root: Path, written: Mapping[str, Mapping[str, Path]]) -> list[dict[str, Any]]:
    """Build the card's `configs:`: every configuration with the exact path of every split's file."""
    entries = []
    for name, splits in written.items():
        files = [{"split": split, "path": [str(path.relative_to(root))]} for split, path in splits.items()]
        entries.append({"config_name": name, **({"default": True} if name == "default" else {}), "data_files": files})
    return entries
