"""Where files that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache folder: `$HFCF_CACHE`, else `~/.cache/hfcf`. It holds converted models, corpora and answered requests."""
    return Path(os.environ.get("HFCF_CACHE", Path.home() / ".cache" / "hfcf"))
