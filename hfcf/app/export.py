"""The counterfactuals of a run as files of JSON lines."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.corpora.custom.export import to_dataset


def files(rows: Dataset, record: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write counterfactuals with all their columns, and in the form of the pasted row.

    Args:
        rows: of `hfcf.expand`.
        record: the pasted row.
        folder: where the files go.

    Returns:
        The two files.
    """
    ours, theirs = folder / "counterfactuals.jsonl", folder / "counterfactuals-as-pasted.jsonl"
    rows.to_json(ours, force_ascii=False)
    Dataset.from_list(to_dataset(rows, like=[dict(record)])).to_json(theirs, force_ascii=False)
    return ours, theirs


def new_folder() -> Path:
    """Make a folder for the files of a run."""
    return Path(tempfile.mkdtemp(prefix="hfcf-app-"))
