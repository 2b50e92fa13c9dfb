"""A dataset repository as a folder: Parquet by configuration and split, and the card that lists the exact files.

The hash of its contents stands in each file's name: `load_dataset` keys its cache by the card's patterns, so a rewritten file
of the same name would be read back stale.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

ROWS = r"\w+(\.\w+)*-[0-9a-f]{16}\.parquet"
"""The names that `write_parquet` gives; those of `datasets` have a hyphen in the split's place."""
_OURS = re.compile(rf"{ROWS}|\.\w+(\.\w+)*\.part")
"""And those while it writes."""


def write_parquet(ds: Dataset, folder: Path, split: str) -> Path:
    """Write a split as `folder/<split>-<hash>.parquet`.

    Args:
        ds: the rows.
        folder: made when missing.
        split: its name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{split}.part"
    ds.to_parquet(str(part))
    with part.open("rb") as file:
        name = f"{split}-{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}.parquet"
    return part.replace(folder / name)


def remove_others(data: Path, written: Iterable[Path]) -> None:
    """Remove what an older run wrote, which no card names any more, and what one that was killed had half written.

    Files that `write_parquet` did not name are a user's own, and stay.
    """
    kept = set(written)
    for path in list(data.rglob("*")):
        if path not in kept and _OURS.fullmatch(path.name) and path.is_file():
            path.unlink()


def configs(root: Path, written: Mapping[str, Mapping[str, Path]], default: str = "default") -> list[dict[str, Any]]:
    """The card's `configs:`: every configuration with the exact path of every split's file.

    Args:
        root: the repository.
        written: {configuration: {split: file}}.
        default: the configuration that `load_dataset(repo)` reads.
    """
    return [
        {
            "config_name": name,
            **({"default": True} if name == default else {}),
            "data_files": [{"split": split, "path": str(path.relative_to(root))} for split, path in splits.items()],
        }
        for name, splits in written.items()
    ]
